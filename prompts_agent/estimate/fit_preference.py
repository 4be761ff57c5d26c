"""Fit of the ranking's preferences: a conditional logit over the meshes of adopted cases.

The chance that a mesh is the adopted one is taken as proportional to
`exp(-(ln time + weights · features) ÷ TEMPERATURE)` over all meshes of its workload (McFadden,
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
from prompts_agent.estimate.preference import FEATURES, features
from prompts_agent.estimate.ranking import fit_probability
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Workload

__all__ = ["TEMPERATURE", "Choice", "choice_of", "fit_preferences"]

FloatColumn = NDArray[np.float64]

TEMPERATURE = 0.03
"""Differences of so much of the time are what people see beside all else they weigh."""
_PULL = 0.1
_ROUNDS = 300
_RATE = 0.006
_MESHES = 120


class Choice(NamedTuple):
    """The meshes of one workload: ln of each one's best time, its features, and the adopted one."""

    model: str
    cost: FloatColumn
    features: FloatColumn
    adopted: int


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
    return Choice(workload.model.name, relative, features(table)[kept], int(adopted[0]))


def fit_preferences(choices: Sequence[Choice]) -> dict[str, float]:
    """Weights by name of `FEATURES`; gradient descent with Adam's steps, the same every time."""
    counts = Counter(choice.model for choice in choices)
    parts = np.array([1.0 / np.sqrt(counts[choice.model]) for choice in choices])
    parts = parts / max(parts.sum(), 1e-12)
    weights = np.zeros(len(FEATURES))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for turn in range(_ROUNDS if choices else 0):
        slope = 2.0 * _PULL * weights
        for choice, part in zip(choices, parts, strict=True):
            slope = slope + part * _slope(choice, weights)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope * slope
        rate = _RATE * (1.0 - turn / _ROUNDS)
        weights = weights - rate * mean / (np.sqrt(square) + 1e-8)
    return {
        name: round(float(weight), 3)
        for name, weight in zip(FEATURES, weights, strict=True)
        if abs(weight) >= 0.002
    }


def _slope(choice: Choice, weights: FloatColumn) -> FloatColumn:
    """Features of the adopted mesh less those that are expected."""
    ease = -(choice.cost + choice.features @ weights) / TEMPERATURE
    chance = np.exp(ease - ease.max())
    chance = chance / chance.sum()
    return np.asarray(choice.features[choice.adopted] - chance @ choice.features)
