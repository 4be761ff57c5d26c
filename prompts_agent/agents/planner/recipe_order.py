"""Recipe order: the ranking if principles decided between layouts that are nearly tied.

No proposal is ranked so. With the threshold chosen on other workloads than are scored it gained
nothing (docs/knowledge.md, "What it changes"), so the estimate decides alone, and recipes give
reasons. `prompts evaluate` scores it, so that this stays known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prompts_agent.knowledge.base import KnowledgeBase
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.vocabulary import FindingKind, Move
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Workload

__all__ = ["NEAR", "Ranked", "recipe_order"]

NEAR = 0.02
"""Costs this close are nearly tied; chosen on the development workloads, of 0.01 to 0.05."""
WAITS = 0.1
"""Of the estimated step: a wait that a recipe is asked for."""
_RECIPES = 6
_BUBBLE = "time.bubble_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A layout in the order of the ranking, with what its estimate is made of."""

    layout: Layout
    cost: float
    """What the ranking makes small (`prompts_agent.estimate.ranking.costs`)."""
    time_s: float
    """Of a step, or of a token."""
    terms: Mapping[str, float]


def recipe_order(
    ranked: Sequence[Ranked], workload: Workload, base: KnowledgeBase, count: int
) -> list[int]:
    """Places in `ranked`, best first, at least the first `count`.

    Of layouts whose costs are within NEAR of the best that is left, one goes before another if more
    of the principles for the other's waits lead to it than away from it.
    """
    left, order = list(range(len(ranked))), list[int]()
    while left and len(order) < count:
        limit = ranked[left[0]].cost * (1.0 + NEAR)
        near = [place for place in left if ranked[place].cost <= limit]
        won = _won({place: ranked[place] for place in near}, workload, base)
        order += sorted(near, key=lambda place: -won[place])
        left = [place for place in left if place not in near]
    return [*order, *left]


def _won(near: Mapping[int, Ranked], workload: Workload, base: KnowledgeBase) -> Counter[int]:
    won: Counter[int] = Counter()
    if len(near) == 1:
        return won
    for place, one in near.items():
        recipes = _principles(one, workload, base)
        for other, two in near.items():
            if any(_leads(recipe, one.layout, two.layout) for recipe in recipes):
                won[other] += 1
                won[place] -= 1
    return won


def _principles(one: Ranked, workload: Workload, base: KnowledgeBase) -> list[Recipe]:
    """Those that the knowledge base gives for what the layout is estimated to wait for."""
    axes = [
        (one.terms.get(f"time.{axis}_exposed_s", 0.0), axis)
        for axis in Axis
        if one.terms.get(f"time.{axis}_exposed_s", 0.0) > WAITS * one.time_s
    ]
    waits = [FindingKind.EXPOSED_COLLECTIVE] if axes else []
    if one.terms.get(_BUBBLE, 0.0) > WAITS * one.time_s:
        waits.append(FindingKind.PIPELINE_BUBBLE)
    if not waits:
        return []
    costliest = tuple(axis for _, axis in sorted(axes, key=lambda item: -item[0]))
    found = base.order(base.rankings(Query.of(workload, tuple(waits), costliest)))
    by_id = {recipe.id: recipe for recipe in base.recipes}
    moving = [by_id[key] for key in found if by_id[key].changes]
    return moving[:_RECIPES]


def _leads(recipe: Recipe, before: Layout, after: Layout) -> bool:
    """The recipe's moves lead from one layout to the other: all that it lowers, one that it raises,
    since several are often alternatives.
    """
    lowered = [c.axis for c in recipe.changes if c.move is not Move.RAISE]
    raised = [c.axis for c in recipe.changes if c.move is Move.RAISE]

    def grows(axis: Axis) -> int:
        return after.mesh.size(axis) - before.mesh.size(axis)

    return all(grows(axis) < 0 for axis in lowered) and (
        not raised or any(grows(axis) > 0 for axis in raised)
    )
