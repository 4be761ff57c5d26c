"""Fit of the ranking's preferences: a conditional logit over the meshes of adopted cases.

The chance that a mesh is the adopted one is taken as proportional to
`exp(-(ln time + preference) ÷ TEMPERATURE)` over all meshes of its workload (McFadden,
1974). A model that has many cases counts as the root of their number, so that one series of runs
does not decide; weights are pulled to 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Calibration
from prompts_agent.estimate.estimator import estimate, usable_hbm_bytes
from prompts_agent.estimate.preference import FEATURES, bounded, features
from prompts_agent.estimate.ranking import fit_probability
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Workload

__all__ = [
    "TEMPERATURE",
    "Agreement",
    "Choice",
    "agreement",
    "agreement_left_out",
    "choice_of",
    "fit_preferences",
]

FloatColumn = NDArray[np.float64]

TEMPERATURE = 0.05
"""Differences of so much of the time are what people see beside all else they weigh."""
_PULL = 0.1
_ROUNDS = 20
_MESHES = 120
_FEWEST = 3


class Choice(NamedTuple):
    """The meshes of one workload: ln of each one's best time, its features, and the adopted one."""

    model: str
    family: str
    cost: FloatColumn
    features: FloatColumn
    adopted: int


class Agreement(NamedTuple):
    """Shares of `cases` in which the adopted mesh is first, and among three."""

    cases: int
    first: float
    three: float


def choice_of(workload: Workload, calibration: Calibration) -> Choice | None:
    """The fastest meshes of `workload` and the adopted one; None where that is not legal."""
    if workload.adopted is None:
        return None
    table = enumerate_layouts(search_space(workload)).table
    found = estimate(table, workload, calibration=calibration)
    chance = fit_probability(found, usable_hbm_bytes(workload))
    cost = np.log(found.step_time_s / chance)
    degrees = np.stack([table.size(axis) for axis in Axis], axis=1)
    wanted = np.array([workload.adopted.degrees.get(axis, 1) for axis in Axis])
    order = np.argsort(cost, kind="stable")
    _, first = np.unique(degrees[order], axis=0, return_index=True)
    best = order[np.sort(first)]
    adopted = np.flatnonzero((degrees[best] == wanted).all(axis=1))
    if not len(adopted):
        return None
    kept = best[: max(_MESHES, int(adopted[0]) + 1)]
    relative = cost[kept] - cost[kept].min()
    model, columns = workload.model, features(table.take(kept), workload)
    return Choice(model.name, model.family, relative, columns, int(adopted[0]))


def agreement(choices: Sequence[Choice], weights: dict[str, float]) -> Agreement:
    """How often the adopted mesh is first, and among three, by time and preference."""
    column = np.array([weights.get(name, 0.0) for name in FEATURES])
    places = []
    for choice in choices:
        cost = choice.cost + bounded(choice.features @ column)
        places.append(1 + int((cost < cost[choice.adopted]).sum()))
    found = np.array(places)
    return Agreement(len(places), float((found <= 1).mean()), float((found <= 3).mean()))


def agreement_left_out(choices: Sequence[Choice]) -> Agreement:
    """The same where each model family is scored by weights that were fitted without it."""
    found = []
    for family in sorted({choice.family for choice in choices}):
        own = [choice for choice in choices if choice.family == family]
        rest = [choice for choice in choices if choice.family != family]
        found.append(agreement(own, fit_preferences(rest)))
    cases = sum(one.cases for one in found)
    return Agreement(
        cases,
        sum(one.cases * one.first for one in found) / cases,
        sum(one.cases * one.three for one in found) / cases,
    )


def fit_preferences(choices: Sequence[Choice]) -> dict[str, float]:
    """Weights by name of `FEATURES`, by Newton's method: what is minimised is convex. None where
    fewer than 3 chose: that would be a person's taste.
    """
    if len(choices) < _FEWEST:
        return {}
    counts = Counter(choice.model for choice in choices)
    parts = np.array([1.0 / np.sqrt(counts[choice.model]) for choice in choices])
    parts = parts / parts.mean()
    weights = np.zeros(len(FEATURES))
    for _ in range(_ROUNDS):
        slope, bend = 2.0 * _PULL * weights, 2.0 * _PULL * np.eye(len(FEATURES))
        for choice, part in zip(choices, parts, strict=True):
            own_slope, own_bend = _bends(choice, weights)
            slope, bend = slope + part * own_slope, bend + part * own_bend
        step = np.linalg.solve(bend, slope)
        # A step that is too long for the chances to be as they were is cut.
        weights = weights - step * min(1.0, 3.0 / max(float(np.abs(step).max()), 1e-9))
    return {
        name: round(float(weight) * TEMPERATURE, 3)
        for name, weight in zip(FEATURES, weights, strict=True)
        if abs(weight) * TEMPERATURE >= 0.002
    }


def _bends(choice: Choice, weights: FloatColumn) -> tuple[FloatColumn, FloatColumn]:
    """First and second derivatives of -ln(chance of the adopted mesh) by the weights."""
    ease = -choice.cost / TEMPERATURE - choice.features @ weights
    chance = np.exp(ease - ease.max())
    chance = chance / chance.sum()
    mean = chance @ choice.features
    spread = (choice.features * chance[:, None]).T @ choice.features - np.outer(mean, mean)
    return np.asarray(choice.features[choice.adopted] - mean), np.asarray(spread)
