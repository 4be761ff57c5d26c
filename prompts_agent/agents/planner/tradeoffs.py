"""What a layout costs, and what would prove its estimate wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.planner.figures import term_words
from prompts_agent.agents.planner.reasons import AXIS_NOUN, dominant_terms
from prompts_agent.agents.report import Change
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis

__all__ = ["tradeoffs"]

MEMORY_RISE = 1.05
"""Below, the memory estimate's own error is larger than the change."""


def tradeoffs(candidate: Candidate, changes: Sequence[Change], case: Case) -> tuple[str, ...]:
    """Costs first, then uncertainty, last the observation that would falsify the estimate."""
    return (
        *_memory(candidate, case),
        *_time(candidate, case),
        *_knobs(changes),
        *_findings(changes, case),
        *_uncertain(candidate),
        *_falsifier(candidate),
    )


def _memory(candidate: Candidate, case: Case) -> Iterator[str]:
    if case.today is None:
        return
    if candidate.predicted.hbm_bytes > MEMORY_RISE * case.today.predicted.hbm_bytes:
        yield "Memory per device rises from {today:hbm} to {term:hbm}."


def _time(candidate: Candidate, case: Case) -> Iterator[str]:
    if case.today is None:
        return
    for name, _ in dominant_terms(candidate, case.today, falls=False)[:1]:
        yield (
            f"In the estimate, {term_words(name)} time rises from {{today:{name}}} to "
            f"{{term:{name}}}."
        )


def _knobs(changes: Sequence[Change]) -> Iterator[str]:
    done = {change.what: change for change in changes}
    accumulation = done.get("gradient_accumulation")
    if accumulation is not None and accumulation.direction == "raise":
        yield (
            "More gradient accumulation ({change:gradient_accumulation}): smaller forward passes, "
            "each of which gathers the weights again."
        )
    if "remat" in done:
        yield (
            "Recomputation changes ({change:remat}): it trades time in the backward pass for "
            "memory, so keep the old policy if the new one does not fit."
        )
    for axis in Axis:
        if axis in done and "dcn" in done[axis].after:
            yield f"{AXIS_NOUN[axis].capitalize()} crosses the network ({{change:{axis}}})."


def _findings(changes: Sequence[Change], case: Case) -> Iterator[str]:
    done = {change.what: change.direction for change in changes}
    for finding in case.findings:
        if finding.kind is not FindingKind.EXPOSED_COLLECTIVE:
            continue
        for axis in case.axes_of(finding):
            if done.get(axis) == "raise":
                yield f"{AXIS_NOUN[axis].capitalize()} grows, and {finding.title} already."


def _uncertain(candidate: Candidate) -> Iterator[str]:
    low = candidate.predicted.speedup_low
    if low is not None and low < 1.0:
        yield "The gain is not certain: the prediction's interval reaches today's step time."


def _falsifier(candidate: Candidate) -> Iterator[str]:
    if candidate.predicted.high_s is not None:
        yield (
            "A run of this layout that takes longer than {term:step_high} a step would show that "
            "the estimate is wrong for this job."
        )
