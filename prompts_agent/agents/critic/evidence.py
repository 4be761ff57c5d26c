"""Whether a draft's sentences rest on something: ids, recipes, and numbers with a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prompts_agent.agents.critic.claims import contradicted
from prompts_agent.agents.critic.review import Objection
from prompts_agent.agents.placeholders import FIGURES, placeholder_ids, unsupported_numbers
from prompts_agent.agents.planner.draft import Draft
from prompts_agent.agents.report import Change, Reason
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import Fact
from prompts_agent.workload.workload import Workload

__all__ = ["Ground", "RecipeMoves", "evidence_objections", "recipe_conflicts"]

RecipeMoves = Mapping[str, tuple[tuple[str, str], ...]]
"""Recipe id → (axis or knob, move), move being `raise`, `lower` or `set_one`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a sentence may rest on."""

    facts: tuple[Fact, ...] = ()
    moves: RecipeMoves = field(default_factory=dict)
    """Every recipe that was retrieved, those without moves too."""
    upper_bound_must_fit: bool = True
    """False where nothing surely fits: then the estimate decides, and the verdict says so."""
    workload: Workload | None = None


def evidence_objections(draft: Draft, ground: Ground) -> tuple[Objection, ...]:
    """Everything that is wrong with the draft's texts."""
    found = [item for reason in draft.reasons for item in _of_reason(reason, draft, ground)]
    for text in draft.tradeoffs:
        found += _of_text(text, draft, ground)
    return tuple(found)


def _of_reason(reason: Reason, draft: Draft, ground: Ground) -> Iterator[Objection]:
    known = {fact.id for fact in ground.facts}

    def object_to(what: str) -> Objection:
        return Objection(about="text", reason=what, text=reason.text)

    for fact_id in reason.fact_ids:
        if fact_id not in known:
            yield object_to(f"fact {fact_id} does not exist")
    for recipe_id in reason.recipe_ids:
        if recipe_id not in ground.moves:
            yield object_to(f"recipe {recipe_id} was not retrieved")
    for term_id in reason.term_ids:
        if term_id not in draft.candidate.terms:
            yield object_to(f"term {term_id} is not in the estimate")
    if not (reason.fact_ids or reason.recipe_ids or reason.term_ids):
        yield object_to("the sentence rests on no fact, recipe or term")
    for conflict in recipe_conflicts(reason.recipe_ids, draft.changes, ground.moves):
        yield object_to(conflict)
    yield from _of_text(reason.text, draft, ground)


def _of_text(text: str, draft: Draft, ground: Ground) -> Iterator[Objection]:
    known = {fact.id for fact in ground.facts}
    for fact_id in placeholder_ids(text):
        if fact_id not in known:
            yield Objection(about="text", reason=f"fact {fact_id} does not exist", text=text)
    for kind in FIGURES:
        for name in placeholder_ids(text, kind):
            if f"{kind}:{name}" not in draft.figures:
                reason = f"{kind} {name} has no value"
                yield Objection(about="text", reason=reason, text=text)
    numbers = unsupported_numbers(text, ground.facts)
    if numbers:
        reason = f"numbers without a source: {', '.join(numbers)}"
        yield Objection(about="text", reason=reason, text=text)
    for sentence in contradicted(text, draft.changes):
        yield Objection(about="text", reason=sentence, text=text)


def recipe_conflicts(
    recipe_ids: tuple[str, ...], changes: tuple[Change, ...], moves: RecipeMoves
) -> tuple[str, ...]:
    """Cited recipes that ask for the opposite of what the layout does, each as a sentence.

    A recipe that asks for more than the layout does (an axis left alone) is no conflict.
    """
    done = {change.what: change.direction for change in changes}
    axes = {axis.value for axis in Axis}
    found = []
    for recipe_id in recipe_ids:
        for axis, move in moves.get(recipe_id, ()):
            wanted = "raise" if move == "raise" else "lower"
            actual = done.get(axis)
            if axis in axes and actual in ("raise", "lower") and actual != wanted:
                found.append(f"recipe {recipe_id} says {move} {axis}, the layout does the opposite")
    return tuple(dict.fromkeys(found))
