"""What a layout costs, what it ties down, and what would prove its estimate wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prompts_agent.agents.planner.bounds import batch_unit, headroom, kv_copies, vocab_padding
from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.planner.reasons import AXIS_NOUN
from prompts_agent.agents.planner.terms import moved_terms, term_words
from prompts_agent.agents.report import Change
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis

__all__ = ["tradeoffs"]

MEMORY_RISE = 1.05
"""Below, the memory estimate's own error is larger than the change."""
TIME_RISE = 0.01
"""Of the step."""
TIGHT = 0.1
"""Share of HBM left at the upper estimate below which a change of anything may not fit."""


def tradeoffs(candidate: Candidate, changes: Sequence[Change], case: Case) -> tuple[str, ...]:
    """Costs first, then what the layout ties down, uncertainty, and what would falsify it."""
    return (
        *_memory(candidate, case),
        *_time(candidate, case),
        *_knobs(candidate, changes),
        *_findings(changes, case),
        *_kv_heads(candidate, case),
        *_vocab(candidate, case),
        *_headroom(candidate, case),
        *_batch(candidate, case),
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
    risen = moved_terms(candidate, case.today, case.objective, falls=False, least=TIME_RISE)
    for name, _ in risen[:1]:
        yield (
            f"In the estimate, {term_words(name)} rises from {{today:{name}}} to {{term:{name}}}."
        )


def _knobs(candidate: Candidate, changes: Sequence[Change]) -> Iterator[str]:
    done = {change.what: change for change in changes}
    yield from _passes(candidate, done.get("gradient_accumulation"))
    remat = done.get("remat")
    if remat is not None and remat.before is not None:
        yield (
            "Recomputation changes ({change:remat}): it trades time in the backward pass for "
            "memory, so keep the old policy if the new one does not fit."
        )
    for axis in Axis:
        if axis in done and "dcn" in done[axis].after:
            yield f"{AXIS_NOUN[axis].capitalize()} crosses the network ({{change:{axis}}})."


def _passes(candidate: Candidate, accumulation: Change | None) -> Iterator[str]:
    """In a pipeline the passes are what fills it, and no cost."""
    mesh = candidate.layout.mesh
    lowered = accumulation is None or accumulation.direction == "lower"
    if accumulation is None or lowered or mesh.size(Axis.PIPELINE) > 1:
        return
    cost = (
        "gathers the weights over fsdp again"
        if mesh.size(Axis.FSDP) > 1
        else "has fewer tokens to fill the matrix units"
    )
    yield f"Gradient accumulation {{change:gradient_accumulation}}: every pass {cost}."


def _findings(changes: Sequence[Change], case: Case) -> Iterator[str]:
    done = {change.what: change.direction for change in changes}
    for finding in case.findings:
        if finding.kind is not FindingKind.EXPOSED_COLLECTIVE:
            continue
        for axis in case.axes_of(finding):
            if done.get(axis) == "raise":
                yield f"{AXIS_NOUN[axis].capitalize()} grows, and {finding.title} already."


def _kv_heads(candidate: Candidate, case: Case) -> Iterator[str]:
    if case.workload is None or kv_copies(candidate.layout, case.workload) == 1:
        return
    known = any(finding.kind is FindingKind.KV_HEADS_SPLIT for finding in case.findings)
    stays = "The tensor axis stays above" if known else "The tensor axis is above"
    yield (
        f"{stays} the {{layout:kv_heads}} KV heads: {{layout:kv_copies}} ranks hold the same keys "
        "and values."
    )


def _vocab(candidate: Candidate, case: Case) -> Iterator[str]:
    if case.workload is not None and vocab_padding(candidate.layout, case.workload):
        yield (
            "The vocabulary lacks {layout:vocab_padding} rows to come out even over tensor: pad it."
        )


def _headroom(candidate: Candidate, case: Case) -> Iterator[str]:
    free = headroom(candidate)
    if free < 0.0:
        yield "The upper memory estimate is above what the chip has: it may not fit."
    elif free < TIGHT or case.today is None:
        tight = ", so a longer sequence or a larger microbatch may not fit" if free < TIGHT else ""
        yield f"The upper memory estimate leaves {{layout:headroom}} of HBM free{tight}."


def _batch(candidate: Candidate, case: Case) -> Iterator[str]:
    """Of a plan that starts from no layout of these devices: which other batches keep it legal."""
    if case.workload is None or case.today is not None or not case.is_training:
        return
    if batch_unit(candidate.layout) > 1:
        yield (
            "The global batch has to stay a multiple of {layout:batch_unit} sequences; the next "
            "is {layout:next_batch}."
        )


def _uncertain(candidate: Candidate) -> Iterator[str]:
    low = candidate.predicted.speedup_low
    if low is not None and low < 1.0:
        yield (
            "It may be no faster: the interval of the gain, {term:speedup_low} to "
            "{term:speedup_high}, reaches below today's layout."
        )


def _falsifier(candidate: Candidate) -> Iterator[str]:
    if candidate.predicted.high_s is not None:
        yield (
            "A run of this layout that takes longer than {term:step_high} a step would show that "
            "the estimate is wrong for this job."
        )
