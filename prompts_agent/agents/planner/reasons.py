"""Reasons for a layout: which findings it answers, which recipes agree, which terms fall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prompts_agent.agents.critic.evidence import recipe_conflicts
from prompts_agent.agents.finding import Finding
from prompts_agent.agents.placeholders import placeholder_ids
from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.planner.figures import term_words
from prompts_agent.agents.report import Change, Reason
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis

__all__ = ["AXIS_NOUN", "dominant_terms", "reasons"]

MAX_RECIPES = 2
"""Recipes cited a layout; more would repeat each other."""
MIN_TERM_SHARE = 0.01
"""Of the step: a term that moves by less decides nothing."""

_TOTALS = frozenset({"serving.ttft_s", "serving.tpot_s"})
"""Sums of terms, not terms."""

AXIS_NOUN = {axis: f"the {axis} axis" for axis in Axis}


def reasons(candidate: Candidate, changes: Sequence[Change], case: Case) -> tuple[Reason, ...]:
    """Findings answered first, then the estimate's terms, then recipes."""
    recipes = _recipes(changes, case) if case.today else _recipes_for_axes(candidate, case)
    found = [*_answers(changes, case), *_terms(candidate, case), *recipes]
    seen: dict[str, Reason] = {}
    for reason in found:
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


def is_time_term(name: str) -> bool:
    """A part of the predicted step: `time.*_s` of training, `serving.*_s` of a decode step."""
    return name.startswith(("time.", "serving.")) and name not in _TOTALS


def dominant_terms(
    candidate: Candidate, today: Candidate, *, falls: bool
) -> list[tuple[str, float]]:
    """Seconds terms that fall (or rise) against today's, largest first, as (name, seconds)."""
    step = today.predicted.step_time_s or 0.0
    moved = []
    for name, value in candidate.terms.items():
        if not is_time_term(name) or name not in today.terms:
            continue
        gain = (today.terms[name] - value) * (1.0 if falls else -1.0)
        if gain > MIN_TERM_SHARE * step:
            moved.append((name, gain))
    # Names break ties, so that equal inputs give equal reports.
    return sorted(moved, key=lambda item: (-item[1], item[0]))


def _terms(candidate: Candidate, case: Case) -> Iterator[Reason]:
    if case.today is not None:
        for name, _ in dominant_terms(candidate, case.today, falls=True)[:1]:
            yield Reason(
                text=f"In the estimate, {term_words(name)} time falls from "
                f"{{today:{name}}} to {{term:{name}}}, the largest gain of all its terms.",
                term_ids=(name,),
            )
        return
    times = {n: v for n, v in candidate.terms.items() if is_time_term(n) and v > 0}
    if times:
        name = max(times, key=lambda n: (times[n], n))
        yield Reason(
            text=f"Of an estimated step of {{term:step_time}}, {term_words(name)} takes "
            f"{{term:{name}}}, the largest term.",
            term_ids=(name,),
        )


def _recipes(changes: Sequence[Change], case: Case) -> Iterator[Reason]:
    """Recipes whose change the layout makes, and the opposite of which it does nowhere."""
    done = {change.what: change.direction for change in changes}
    cited = 0
    for recipe_id, moves in case.moves.items():
        agreed = _agreed(moves, done)
        if not agreed or cited == MAX_RECIPES:
            continue
        if recipe_conflicts((recipe_id,), tuple(changes), case.moves):
            continue
        cited += 1
        moved = " and ".join(f"{axis} ({{change:{axis}}})" for axis in dict.fromkeys(agreed))
        yield Reason(
            text=f"The knowledge base recommends this change of {moved}.",
            recipe_ids=(recipe_id,),
        )


def _recipes_for_axes(candidate: Candidate, case: Case) -> Iterator[Reason]:
    """Without a layout to move from: recipes that do nothing but raise an axis that is used."""
    used = candidate.layout.mesh.used()
    cited = 0
    for recipe_id, moves in case.moves.items():
        axes = [axis for axis, _ in moves if axis in used]
        if not axes or any(move != "raise" for _, move in moves) or cited == MAX_RECIPES:
            continue
        cited += 1
        named = " and ".join(f"{axis} ({{change:{axis}}})" for axis in dict.fromkeys(axes))
        yield Reason(
            text=f"The knowledge base has a recipe for {named} in this phase and on this hardware.",
            recipe_ids=(recipe_id,),
        )


def _agreed(moves: Sequence[tuple[str, str]], done: Mapping[str, str]) -> list[str]:
    """What of a recipe the layout does; nothing where it leaves out the recipe's point.

    What a recipe lowers is its point, and all of it has to be done; where it raises several axes
    instead, they are often alternatives, and one is enough.
    """
    lowered = [axis for axis, move in moves if move != "raise"]
    raised = [axis for axis, move in moves if move == "raise"]
    grown = [axis for axis in raised if done.get(axis) == "raise"]
    if any(done.get(axis) != "lower" for axis in lowered) or (raised and not grown):
        return []
    return [*lowered, *grown]
