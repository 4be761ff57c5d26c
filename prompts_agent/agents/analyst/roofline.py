"""Where computing time goes: near the compute roof, or on HBM bandwidth."""

from __future__ import annotations

from prompts_agent.agents.analyst.cite import finding, period_s, sentence
from prompts_agent.agents.finding import Finding
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.profile import OpUse, Profile, Roofline
from prompts_agent.workload.workload import Workload

__all__ = ["BANDWIDTH_SHARE", "BUSY_SHARE", "NEAR_ROOF", "detect"]

BUSY_SHARE = 0.85
"""Of the step in compute: what is left cannot hide a large loss elsewhere."""
NEAR_ROOF = 0.5
"""Of the peak while computing. The best published training runs reach 0.5 to 0.65 of the peak over
the whole step (MFU), so from here on the matmuls themselves are in order."""
BANDWIDTH_SHARE = 0.3
"""Of the step in ops that are nearer to the HBM ceiling. Element-wise ops and norms of a healthy
training step stay below."""


def detect(profile: Profile, workload: Workload | None) -> list[Finding]:
    """Compute bound, memory-bandwidth bound, both or neither."""
    found = (_compute(profile), _bandwidth(profile, workload))
    return [item for item in found if item is not None]


def ops_at(profile: Profile, ceiling: Roofline) -> list[OpUse]:
    """Ops that are nearer to that ceiling; collectives' own time is not theirs."""
    return [op for op in profile.top_ops if op.roofline is ceiling]


def _compute(profile: Profile) -> Finding | None:
    """The step computes nearly all the time, and its compute-bound ops run near the roof.

    No seconds: nothing is lost that a cure could bring back.
    """
    period, compute = period_s(profile), profile.breakdown.compute_s
    if period is None or compute is None or compute < BUSY_SHARE * period:
        return None
    rated = [op for op in ops_at(profile, Roofline.COMPUTE) if op.roofline_efficiency is not None]
    time = sum(op.total_s for op in rated)
    at_roof = sum(op.total_s * (op.roofline_efficiency or 0.0) for op in rated)
    # The rated ops must be most of the compute, or their efficiency says nothing of the step's.
    if time < 0.5 * compute or at_roof < NEAR_ROOF * time:
        return None
    return finding(
        profile,
        FindingKind.COMPUTE_BOUND,
        title=sentence(
            profile,
            "The step computes for {fact:breakdown.compute} of {fact:step_time}, near the peak",
            "The step computes nearly all the time, near the peak",
        ),
        detail="Little can be won by moving data differently. Fewer FLOPs (less recomputation, "
        "a lower-precision matmul, a better kernel) or more chips are what is left.",
        is_sharding=False,
        fact_ids=("breakdown.compute", "step_time", "derived.compute.efficiency"),
    )


def _bandwidth(profile: Profile, workload: Workload | None) -> Finding | None:
    period = period_s(profile)
    ops = ops_at(profile, Roofline.HBM)
    seconds = sum(op.total_s for op in ops)
    if period is None or seconds <= BANDWIDTH_SHARE * period:
        return None
    serving = workload is not None and not workload.phase.is_training
    cure = (
        "In serving, each step reads the weights and the cache once: more sequences a step, a "
        "smaller dtype, or weights cut over more devices raise the yield of each read."
        if serving
        else "Fuse element-wise ops, or cut activations over more devices (sequence parallelism)."
    )
    return finding(
        profile,
        FindingKind.MEMORY_BANDWIDTH_BOUND,
        title=sentence(
            profile,
            "Ops that wait for HBM take {fact:derived.hbm_bound.time} of each step",
            "Ops that wait for HBM take much of each step",
        ),
        detail=cure,
        # How many bytes a device reads per step depends on what the mesh cuts.
        is_sharding=True,
        fact_ids=("derived.hbm_bound.time", "step_time"),
        seconds=seconds,
    )
