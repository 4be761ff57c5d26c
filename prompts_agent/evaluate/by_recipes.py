"""By recipes: what the knowledge base would change if its principles decided near ties, and by how
much.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from prompts_agent.agents.planner.recipe_order import Ranked, recipe_order
from prompts_agent.estimate.estimate import Estimates
from prompts_agent.estimate.estimator import ranking_costs
from prompts_agent.evaluate.bootstrap import Figure, mean_figure
from prompts_agent.evaluate.rows import seconds_of
from prompts_agent.evaluate.score import ADVISOR, Score
from prompts_agent.knowledge.base import KnowledgeBase
from prompts_agent.knowledge.library import library_digest, load_recipes
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.vocabulary import RecipeKind
from prompts_agent.layout.table import LayoutTable
from prompts_agent.resources import data_directory
from prompts_agent.workload.workload import Workload

__all__ = ["BY_RECIPES", "by_recipes", "effect", "principles_digest"]

IntColumn = NDArray[np.int64]

BY_RECIPES = "recipes decide near ties"
_SEEN = 12
"""Rows of the ranking that may come among the first three."""


def by_recipes(
    ranked: IntColumn, table: LayoutTable, estimates: Estimates, workload: Workload
) -> IntColumn:
    """The first three rows, where principles decide between those whose estimates are nearly equal.

    Principles only: a case may be drawn from the workload under test.
    """
    costs = ranking_costs(estimates, table, workload)
    times_s = seconds_of(estimates, workload)
    rows = ranked[:_SEEN]
    seen = [
        Ranked(
            layout=table.row(int(row)),
            cost=float(costs[row]),
            time_s=float(times_s[row]),
            terms={name: float(column[row]) for name, column in estimates.terms.items()},
        )
        for row in rows
    ]
    return np.asarray(rows[recipe_order(seen, workload, _base(), 3)[:3]], dtype=np.int64)


@cache
def _principles() -> tuple[Recipe, ...]:
    shipped = load_recipes(data_directory("knowledge_base"))
    return tuple(recipe for recipe in shipped if recipe.kind is RecipeKind.PRINCIPLE)


@cache
def _base() -> KnowledgeBase:
    """Open for the process, which scores many workloads."""
    return KnowledgeBase(_principles()).__enter__()


@cache
def principles_digest() -> str:
    """Of what decides: other recipes score anew."""
    return library_digest(_principles())


def effect(scores: Sequence[Score]) -> str | None:
    """With recipes less without, in points with the interval over workloads, a sentence; None where
    nothing was adopted.
    """
    pairs = [
        (score.cluster, score.methods[BY_RECIPES], score.methods[ADVISOR])
        for score in scores
        if score.kind == "adopted" and BY_RECIPES in score.methods
    ]
    first = mean_figure({name: [(w.top_1 or 0.0) - (o.top_1 or 0.0)] for name, w, o in pairs})
    three = mean_figure({name: [(w.top_3 or 0.0) - (o.top_3 or 0.0)] for name, w, o in pairs})
    if first is None or three is None:
        return None
    return (
        "The knowledge base changes no rank. If its principles decided between layouts that are "
        f"nearly tied: first {_points(first)}, among three {_points(three)}."
    )


def _points(figure: Figure) -> str:
    value, low, high = (100.0 * number for number in (figure.value, figure.low, figure.high))
    return f"{value:+.1f} points ({low:+.1f} to {high:+.1f})"
