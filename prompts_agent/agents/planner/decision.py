"""Whether to plan at all: a loss that no mesh cures, and a trace that cannot tell, are answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prompts_agent.agents.finding import Finding
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.report import Abstention, Rejection
from prompts_agent.units import format_bytes
from prompts_agent.workload.workload import Objective

if TYPE_CHECKING:
    from prompts_agent.agents.planner.search import Found

__all__ = [
    "MIN_GAIN",
    "already_best",
    "cannot_tell",
    "dominating",
    "gain",
    "not_sharding",
    "nothing_fits",
    "nothing_passes",
    "worth_proposing",
]

DOMINANT_SHARE = 0.5
"""Of what is lost: curing it saves more than curing everything else."""
MIN_STEP_SHARE = 0.2
"""Of the step: below, a better mesh may still be worth more than the cure."""
MAX_REASONS = 5
CAPTURE_AGAIN = (
    "Or capture again, a few steady steps on the real devices with device events and HLO: such a "
    "trace tells most of this by itself."
)
WORTH_A_TRIAL = 1.15
"""The upper end of a gain at which an engineer would run another layout to see."""
MIN_GAIN = 1.02
"""Speed-up over today's layout; repeated runs of one layout differ by one or two percent."""


def dominating(findings: Sequence[Finding]) -> Finding | None:
    """The costliest finding, where it is no matter of sharding and dominates the step.

    Losses are the seconds of all findings; they may overlap, which makes the test stricter.
    """
    costly = [f for f in findings if f.seconds_per_step]
    if not costly:
        return None
    first = max(costly, key=lambda f: f.seconds_per_step or 0.0)
    seconds = first.seconds_per_step or 0.0
    lost = sum(f.seconds_per_step or 0.0 for f in costly)
    dominates = seconds > DOMINANT_SHARE * lost and (first.share or 0.0) > MIN_STEP_SHARE
    if first.is_sharding or not dominates:
        return None
    return first


def not_sharding(first: Finding, cures: Sequence[str]) -> Abstention:
    """The abstention for a loss that no mesh cures."""
    return Abstention(
        kind="not_sharding",
        text=f"{first.title}. That is most of what is lost, and no mesh would cure it.",
        next_steps=(first.detail, *cures),
    )


def cannot_tell(missing: Sequence[str], *, poor: bool = False) -> Abstention | None:
    """An abstention that says what to give, where the job itself is not known.

    `poor`: the trace is one that tells less than another capture of the job would.
    """
    if not missing:
        return None
    return Abstention(
        kind="cannot_tell",
        text="This input does not say enough about the job to plan a mesh for it.",
        next_steps=(*missing, *((CAPTURE_AGAIN,) if poor else ())),
    )


def already_best(
    found: Found,
    candidates: Sequence[Candidate],
    objective: Objective,
    findings: Sequence[Finding] = (),
) -> Abstention | None:
    """An abstention where no candidate is predicted to beat today's layout by more than noise, and
    none can by more than a trial is worth.

    Where the interval reaches further, the estimate cannot tell the layouts apart: proposals are
    made, and say so themselves.
    """
    if found.today is None or not found.candidates:
        return None
    if candidates and _may_not_fit(found):
        # Today's layout may not fit; any that surely does is an improvement.
        return None
    best = found.candidates[0]
    if candidates and gain(best, found.today, objective) > MIN_GAIN:
        return None
    if objective is not Objective.FIT and _worth_a_trial(candidates):
        return None
    return Abstention(
        kind="already_best",
        text="No legal layout that fits is predicted to beat today's by more than runs of one "
        f"layout differ.{_nearest(found, objective)}",
        next_steps=_instead(findings),
    )


def _worth_a_trial(candidates: Sequence[Candidate]) -> bool:
    highs = [candidate.predicted.speedup_high or 0.0 for candidate in candidates]
    return max(highs, default=0.0) > WORTH_A_TRIAL


def _nearest(found: Found, objective: Objective) -> str:
    """The best of the others with its predicted gain, so that a person can judge the distance."""
    today = found.today
    others = [c for c in found.candidates if today is None or c.layout.mesh != today.layout.mesh]
    if today is None or not others:
        return ""
    other = others[0]
    if objective is Objective.FIT:
        needs = format_bytes(other.predicted.hbm_bytes)
        return f" The nearest, {other.layout}, needs {needs} a device."
    low, high = other.predicted.speedup_low, other.predicted.speedup_high
    within = f", {low:.2f}× to {high:.2f}×" if low is not None and high is not None else ""
    times = gain(other, today, objective)
    return f" The nearest, {other.layout}, is predicted at {times:.2f}× today's{within}."


def _instead(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Where time may be found: in losses that are no matter of sharding, or in a trace."""
    other = [f.title for f in findings if not f.is_sharding and f.seconds_per_step]
    if other:
        return tuple(f"Look at what no mesh cures: {title}." for title in other)
    if findings:
        return ("Keep the mesh, and look for time in kernels, precision and recomputation.",)
    return (
        "Keep the mesh. A trace of the job tells what else it waits for: prompts diagnose TRACE "
        "--workload FILE.",
    )


def _may_not_fit(found: Found) -> bool:
    """Today's layout may not fit by its estimate, and no run of it has shown that it does."""
    today = found.today
    if today is None or found.today_measured:
        return False
    return today.hbm_high_bytes > today.predicted.hbm_limit_bytes


def nothing_passes(rejected: Sequence[Rejection]) -> Abstention:
    """The abstention for drafts of which none got past the critic."""
    reasons = dict.fromkeys(reason for item in rejected for reason in item.reasons)
    return Abstention(
        kind="nothing_fits",
        text="No layout passed the critic.",
        next_steps=tuple(reasons)[:MAX_REASONS],
    )


def worth_proposing(found: Found, objective: Objective) -> tuple[Candidate, ...]:
    """Candidates without today's own layout and, where speed is asked for, without those whose
    whole interval is slower than today's.
    """
    today = found.today
    if today is None:
        return found.candidates
    others = [c for c in found.candidates if c.layout != today.layout]
    if objective is Objective.FIT or _may_not_fit(found):
        return tuple(others)
    return tuple(c for c in others if (c.predicted.speedup_high or math.inf) > 1.0)


def gain(candidate: Candidate, today: Candidate, objective: Objective) -> float:
    """How many times better than today's layout, in what the objective asks for."""
    ours, theirs = candidate.predicted, today.predicted
    if objective is Objective.FIT:
        return theirs.hbm_bytes / max(1, ours.hbm_bytes)
    if objective is Objective.LATENCY and ours.step_time_s and theirs.step_time_s:
        return theirs.step_time_s / ours.step_time_s
    return ours.speedup or 0.0


def nothing_fits(found: Found) -> Abstention | None:
    """An abstention where no layout is legal, or none can fit."""
    if found.candidates:
        return None
    if found.count.legal == 0:
        return Abstention(
            kind="nothing_fits",
            text="No layout of these devices is legal for this model, batch and constraints.",
            next_steps=("Loosen the workload's constraints, or change the number of devices.",),
        )
    return Abstention(
        kind="nothing_fits",
        text="No legal layout fits the memory of these devices.",
        next_steps=(
            "Use more devices, chips with more HBM, a smaller global batch or sequence, or "
            "optimizer state of a smaller dtype.",
        ),
    )
