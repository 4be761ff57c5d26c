"""HBM nearly full: no room for a larger batch, and fragmentation may end the job."""

from __future__ import annotations

from prompts_agent.agents.analyst.cite import finding, sentence
from prompts_agent.agents.finding import Finding
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.workload import Workload

__all__ = ["FULL_SHARE", "detect"]

FULL_SHARE = 0.92
"""Of the capacity. XLA keeps a few percent for itself and its programs, and fragmentation takes
some more, so that allocations fail before the counter reads full."""


def detect(profile: Profile, workload: Workload | None) -> list[Finding]:  # noqa: ARG001
    """One finding where the peak is close to the capacity."""
    peak, capacity = profile.hbm_peak_bytes, profile.hbm_capacity_bytes
    if peak is None or not capacity or peak <= FULL_SHARE * capacity:
        return []
    return [
        finding(
            profile,
            FindingKind.HBM_NEARLY_FULL,
            title=sentence(
                profile,
                "HBM peaks at {fact:hbm.peak} of {fact:hbm.capacity}",
                "HBM is nearly full",
            ),
            detail="There is no room for a larger batch or less recomputation. Shard weights and "
            "optimizer state over more devices, or lower the tokens per device.",
            is_sharding=True,
            fact_ids=("hbm.peak", "hbm.capacity"),
        )
    ]
