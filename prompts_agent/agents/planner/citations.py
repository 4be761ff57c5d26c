"""Recipes that agree with what a layout does, each with its title as the mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prompts_agent.agents.critic.evidence import recipe_conflicts
from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.report import Change, Reason
from prompts_agent.layout.mesh import Axis

__all__ = ["MAX_RECIPES", "agrees", "citations"]

MAX_RECIPES = 2
"""Recipes cited a layout; more would repeat each other."""


def citations(candidate: Candidate, changes: Sequence[Change], case: Case) -> Iterator[Reason]:
    """At most MAX_RECIPES, in the order of the retrieval; only those whose title is known."""
    cited = 0
    for recipe_id in case.moves:
        if recipe_id not in case.titles or cited == MAX_RECIPES:
            continue
        clause = _clause(recipe_id, candidate, changes, case)
        if clause:
            cited += 1
            yield Reason(text=f"As in {{recipe:{recipe_id}}}: {clause}.", recipe_ids=(recipe_id,))


def agrees(recipe_id: str, candidate: Candidate, changes: Sequence[Change], case: Case) -> bool:
    """The layout does what the recipe says, and nothing against it."""
    return recipe_id in case.moves and bool(_clause(recipe_id, candidate, changes, case))


def _clause(recipe_id: str, candidate: Candidate, changes: Sequence[Change], case: Case) -> str:
    if case.from_nothing:
        return _axes_used(candidate, case.moves[recipe_id])
    return _changes_made(recipe_id, changes, case)


def _changes_made(recipe_id: str, changes: Sequence[Change], case: Case) -> str:
    """What of the recipe the layout does; empty where it does nothing or also the opposite."""
    done = {change.what: change.direction for change in changes}
    agreed = _agreed(case.moves[recipe_id], done)
    if recipe_conflicts((recipe_id,), tuple(changes), case.moves):
        return ""
    return " and ".join(_placed(what) for what in dict.fromkeys(agreed))


def _placed(what: str) -> str:
    return f"{what.replace('_', ' ')} {{change:{what}}}"


def _axes_used(candidate: Candidate, moves: Sequence[tuple[str, str]]) -> str:
    """Without a layout to move from: the recipe raises axes that are used, lowers only others."""
    used = candidate.layout.mesh.used()
    raised = [axis for axis, move in moves if move == "raise" and axis in used]
    lowered = [axis for axis, move in moves if move != "raise" and axis in set(Axis)]
    if not raised or any(axis in used for axis in lowered):
        return ""
    named = " and ".join(_placed(axis) for axis in dict.fromkeys(raised))
    instead = " and ".join(dict.fromkeys(lowered))
    return f"{named} rather than {instead}" if instead else named


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
