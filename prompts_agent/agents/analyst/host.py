"""Time lost to the host: transfers, input, compiling, and gaps between steps. None is sharding."""

from __future__ import annotations

from prompts_agent.agents.analyst.cite import finding, period_s, sentence
from prompts_agent.agents.finding import Finding
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.workload import Workload

__all__ = ["HOST_SHARE", "detect"]

HOST_SHARE = 0.05
"""Of the step. Input, transfers and dispatch that are hidden well leave one to three percent; from
five on, a person can see the gap in a timeline."""


def detect(profile: Profile, workload: Workload | None) -> list[Finding]:  # noqa: ARG001
    """Host transfer, input, idle and recompilation, each where it is above its threshold."""
    period = period_s(profile)
    parts = (_transfer(profile), _input(profile), _idle(profile))
    slow = [
        part
        for part in parts
        if part is not None
        and period is not None
        and (part.seconds_per_step or 0.0) > HOST_SHARE * period
    ]
    return [*slow, *_recompiling(profile)]


def _transfer(profile: Profile) -> Finding | None:
    if profile.breakdown.host_transfer_s is None:
        return None
    return finding(
        profile,
        FindingKind.HOST_TRANSFER,
        title=sentence(
            profile,
            "The device waits {fact:breakdown.host_transfer} of each step for copies from or to "
            "host memory",
            "The device waits for copies from or to host memory",
        ),
        detail="Offloaded weights, optimizer state or activations cross the host link, which is "
        "far slower than HBM. Keep them in HBM, offload less, or start the copies earlier.",
        is_sharding=False,
        fact_ids=("breakdown.host_transfer", "step_time"),
        seconds=profile.breakdown.host_transfer_s,
    )


def _input(profile: Profile) -> Finding | None:
    if profile.breakdown.input_s is None:
        return None
    return finding(
        profile,
        FindingKind.INPUT_BOUND,
        title=sentence(
            profile,
            "The device waits {fact:breakdown.input} of each step for its input",
            "The device waits for its input",
        ),
        detail="The input pipeline is slower than the step. Prefetch to the device, add input "
        "workers, or move decoding and tokenising out of the loop.",
        is_sharding=False,
        fact_ids=("breakdown.input", "step_time"),
        seconds=profile.breakdown.input_s,
    )


def _idle(profile: Profile) -> Finding | None:
    if profile.breakdown.idle_s is None:
        return None
    return finding(
        profile,
        FindingKind.IDLE_BETWEEN_STEPS,
        title=sentence(
            profile,
            "The device is idle for {fact:breakdown.idle} of each step",
            "The device is idle between steps",
        ),
        detail="Nothing runs: the host dispatches late, or blocks on a result (logging a loss, a "
        "checkpoint, sampling). Dispatch ahead and fetch metrics asynchronously.",
        is_sharding=False,
        fact_ids=("breakdown.idle", "step_time", "step_period"),
        seconds=profile.breakdown.idle_s,
    )


def _recompiling(profile: Profile) -> list[Finding]:
    if not profile.recompilations:
        return []
    seconds = None
    if profile.recompile_s is not None and profile.step is not None and profile.step.count > 0:
        # Spread over the steps seen: the bound that holds if the job goes on as in the capture.
        seconds = profile.recompile_s / profile.step.count
    return [
        finding(
            profile,
            FindingKind.RECOMPILING,
            title=sentence(
                profile,
                "Programs were compiled again within the capture ({fact:recompilations} in all)",
                "Programs were compiled again within the capture",
            ),
            detail="A shape, a dtype or a static argument changes between steps. Pad to fixed "
            "shapes, hoist the jit, and keep Python numbers out of its arguments; if the capture "
            "began with the job's first step, capture later.",
            is_sharding=False,
            fact_ids=("recompilations", "recompile_time"),
            seconds=seconds,
        )
    ]
