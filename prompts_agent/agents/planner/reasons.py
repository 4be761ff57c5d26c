"""Reasons for a layout: findings it answers, what it gains, why before the next, who agrees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prompts_agent.agents.finding import Finding
from prompts_agent.agents.placeholders import placeholder_ids
from prompts_agent.agents.planner.case import Case, Standing
from prompts_agent.agents.planner.citations import citations
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.planner.rivalry import against_neighbours
from prompts_agent.agents.planner.terms import is_part, moved_terms, term_words
from prompts_agent.agents.report import Change, Reason
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis

__all__ = ["AXIS_NOUN", "reasons"]

MIN_GAIN_SHARE = 0.01
"""Of the step: a term that falls by less is not what makes a layout better than today's."""

AXIS_NOUN = {axis: f"the {axis} axis" for axis in Axis}


def reasons(
    candidate: Candidate, changes: Sequence[Change], case: Case, standing: Standing
) -> tuple[Reason, ...]:
    """Findings answered first, then the gain over today, the neighbours, and recipes."""
    found = [
        *_answers(changes, case),
        *_gain(candidate, case),
        *against_neighbours(candidate, case, standing),
        *citations(candidate, changes, case),
    ]
    seen: dict[str, Reason] = {}
    for reason in found or _largest_term(candidate, case):
        seen.setdefault(reason.text, reason)
    return tuple(seen.values())


def _answers(changes: Sequence[Change], case: Case) -> Iterator[Reason]:
    for finding in case.findings:
        text = _answer(finding, changes, case)
        if text is not None and finding.fact_ids:
            ids = dict.fromkeys((*finding.fact_ids, *placeholder_ids(text)))
            yield Reason(text=text, fact_ids=tuple(ids))


def _answer(finding: Finding, changes: Sequence[Change], case: Case) -> str | None:
    """The sentence that says how the changes answer that finding; None where they do not."""
    done = {change.what: change.direction for change in changes}
    match finding.kind:
        case FindingKind.EXPOSED_COLLECTIVE:
            return _smaller_group(finding, case.axes_of(finding), done)
        case FindingKind.KV_HEADS_SPLIT | FindingKind.SMALL_MATMULS if (
            finding.is_sharding and done.get(Axis.TENSOR) == "lower"
        ):
            return f"Lowers the tensor axis ({{change:tensor}}). {finding.title}."
        case FindingKind.PIPELINE_BUBBLE if done.get(Axis.PIPELINE) == "lower":
            return f"Lowers the pipeline axis ({{change:pipeline}}). {finding.title}."
        case FindingKind.PIPELINE_BUBBLE if done.get("gradient_accumulation") == "raise":
            return (
                "Puts more microbatches in flight ({change:gradient_accumulation}). "
                f"{finding.title}."
            )
        case FindingKind.HBM_NEARLY_FULL | FindingKind.REPLICATED_WEIGHTS:
            return _cut_finer(finding, done)
    return None


def _smaller_group(finding: Finding, axes: Sequence[Axis], done: Mapping[str, str]) -> str | None:
    """Fewer devices take part in the collective: one of its axes is lowered and none is raised."""
    lowered = [axis for axis in axes if done.get(axis) == "lower"]
    if not lowered or any(done.get(axis) == "raise" for axis in axes):
        return None
    named = " and ".join(f"{AXIS_NOUN[axis]} ({{change:{axis}}})" for axis in lowered)
    return f"Lowers {named}. {finding.title[0].upper()}{finding.title[1:]}."


def _cut_finer(finding: Finding, done: Mapping[str, str]) -> str | None:
    for axis in (Axis.FSDP, Axis.TENSOR, Axis.PIPELINE, Axis.EXPERT):
        if done.get(axis) == "raise":
            raised = f"Raises {AXIS_NOUN[axis]} ({{change:{axis}}})"
            return f"{raised}, which cuts weights. {finding.title}."
    return None


def _gain(candidate: Candidate, case: Case) -> Iterator[Reason]:
    """The gain over today's layout with its interval, and the term that falls most."""
    if case.today is None:
        return
    fallen = moved_terms(candidate, case.today, case.objective, falls=True, least=MIN_GAIN_SHARE)
    for name, _ in fallen[:1]:
        bounded = candidate.predicted.speedup_low is not None
        within = " ({term:speedup_low} to {term:speedup_high})" if bounded else ""
        gain = f"Predicted at {{term:speedup}} today's throughput{within}: "
        yield Reason(
            text=(gain if candidate.predicted.speedup is not None else "In the estimate, ")
            + f"{term_words(name)} falls from {{today:{name}}} to {{term:{name}}}, the largest "
            "gain of all its terms.",
            term_ids=(name,),
        )


def _largest_term(candidate: Candidate, case: Case) -> Iterator[Reason]:
    """What the step is made of, where nothing else is to be said: no rival, finding or recipe."""
    parts = {n: v for n, v in candidate.terms.items() if is_part(n, case.objective) and v > 0}
    if not parts:
        return
    name = max(parts, key=lambda n: (parts[n], n))
    yield Reason(
        text=f"Of an estimated step of {{term:step_time}}, {term_words(name)} takes "
        f"{{term:{name}}}, the largest term.",
        term_ids=(name,),
    )
