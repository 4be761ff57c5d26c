"""Stragglers: one chip or host that every other waits for."""

from __future__ import annotations

from statistics import median

from prompts_agent.agents.analyst.cite import finding, sentence
from prompts_agent.agents.finding import Finding
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.workload import Workload

__all__ = ["STRAGGLER_RATIO", "detect"]

STRAGGLER_RATIO = 1.05
"""Slowest ÷ median. Equal chips running one program differ by a percent or two."""


def detect(profile: Profile, workload: Workload | None) -> list[Finding]:  # noqa: ARG001
    """One finding where the slowest chip is clearly slower than the median."""
    if len(profile.stragglers) < 2:
        return []
    times = [host.step_time_s for host in profile.stragglers]
    middle, slowest = median(times), max(times)
    if middle <= 0 or slowest <= STRAGGLER_RATIO * middle or profile.structure_only:
        return []
    return [
        finding(
            profile,
            FindingKind.STRAGGLER,
            title=sentence(
                profile,
                "One device is slower than the rest by {fact:derived.straggler.excess} a step",
                "One device is slower than the rest",
            ),
            detail=sentence(
                profile,
                "All others wait for {fact:derived.straggler.name} at the next collective. Compare "
                "its clocks, its host and its share of the data before changing any mesh.",
                "All others wait for it at the next collective. Compare its clocks, its host and "
                "its share of the data before changing any mesh.",
            ),
            is_sharding=False,
            fact_ids=("derived.straggler.excess", "step_time"),
            seconds=slowest - middle,
        )
    ]
