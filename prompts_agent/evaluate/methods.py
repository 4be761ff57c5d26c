"""Methods: what every way of choosing reaches on one workload's runs, or on its legal layouts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Calibration
from prompts_agent.estimate.estimate import Estimates
from prompts_agent.estimate.estimator import propose, rank
from prompts_agent.evaluate.meshes import count_meshes, degrees_of
from prompts_agent.evaluate.rows import seconds_of
from prompts_agent.evaluate.rules import RULES
from prompts_agent.evaluate.score import Method
from prompts_agent.evaluate.scores import best_of_random, kendall_tau, regret, tied_best
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Workload

__all__ = ["by_estimate", "on_adopted", "on_runs", "random_of", "top_choices"]

FloatColumn = NDArray[np.float64]
IntColumn = NDArray[np.int64]


def top_choices(
    estimates: Estimates,
    table: LayoutTable,
    workload: Workload,
    calibration: Calibration | None = None,
) -> IntColumn:
    """The three that we would propose among the rows; the best of them anyway where nothing may
    fit.
    """
    chosen = propose(estimates, table, workload, calibration=calibration)
    if len(chosen):
        return chosen
    return rank(estimates, table, workload, calibration=calibration)[:1]


def by_estimate(
    estimates: Estimates,
    table: LayoutTable,
    workload: Workload,
    times_s: FloatColumn,
    calibration: Calibration | None = None,
) -> Method:
    """Estimates held against measured runs of the same rows; `calibration` gives preferences."""
    chosen = top_choices(estimates, table, workload, calibration)
    return Method(
        top_1=float(tied_best(times_s)[chosen[0]]),
        top_3=float(tied_best(times_s)[chosen].any()),
        regret=regret(times_s, chosen[:1]),
        regret_3=regret(times_s, chosen),
        tau=kendall_tau(seconds_of(estimates, workload), times_s),
    )


def random_of(times_s: FloatColumn) -> Method:
    """A run drawn evenly, or the best of three, in expectation; exact."""
    best = tied_best(times_s)
    losses = times_s / times_s.min() - 1.0
    return Method(
        top_1=float(best.mean()),
        top_3=1.0 - best_of_random(best.astype(np.float64), 3),
        regret=float(losses.mean()),
        regret_3=best_of_random(losses, 3),
        tau=0.0,
    )


def on_runs(table: LayoutTable, workload: Workload, times_s: FloatColumn) -> dict[str, Method]:
    """Random and the rules of thumb among runs, all of which fitted."""
    found = {"random": random_of(times_s)}
    best, losses = tied_best(times_s), times_s / times_s.min() - 1.0
    for name, rule in RULES.items():
        rows = rule(table, workload, np.ones(len(table), dtype=np.bool_))
        found[name] = Method(top_1=float(best[rows].mean()), regret=float(losses[rows].mean()))
    return found


def on_adopted(
    table: LayoutTable, workload: Workload, fits: NDArray[np.bool_], adopted: IntColumn
) -> dict[str, Method]:
    """Random meshes and the rules of thumb among all legal layouts, against the adopted degrees."""
    degrees = degrees_of(table)
    right = bool((degrees == adopted).all(axis=1).any())
    count = max(1, count_meshes(degrees))
    found = {
        "random": Method(top_1=float(right) / count, top_3=float(right) * min(1.0, 3.0 / count))
    }
    for name, rule in RULES.items():
        rows = rule(table, workload, fits) if len(table) else np.empty(0, dtype=np.int64)
        # Layouts that differ by knobs alone are one mesh.
        meshes = np.unique(degrees[rows], axis=0)
        share = float((meshes == adopted).all(axis=1).mean()) if len(meshes) else 0.0
        found[name] = Method(top_1=share)
    return found
