"""Points: what was measured of training layouts, and how far a calibration misses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.as_run import as_run_choices
from prompts_agent.estimate.calibration import Calibration, Stack
from prompts_agent.estimate.estimator import estimate, usable_hbm_bytes
from prompts_agent.estimate.ranking import fit_probability
from prompts_agent.estimate.stack import stack_of
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Measured, Workload

__all__ = ["Point", "loss", "points_of", "residuals"]

FloatColumn = NDArray[np.float64]
IntColumn = NDArray[np.int64]

# Beyond this a miss counts linearly: a run that stalled tells nothing about layouts.
_KNEE = 0.3
_RATIO_KNEE = 0.1
# Runs of one workload that took this much longer than its best are left out as stalled.
_STALLED = 2.2
# Of a sweep so many runs, spread evenly over their times, and of one model on one chip so many
# sweeps: the rest of a large collection says the same again.
_RUNS = 24
_SWEEPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One workload and its runs. `rows` are the layouts that each run may have been, `run` says
    which run each row belongs to.
    """

    workload: Workload
    rows: LayoutTable
    run: IntColumn
    measured_s: FloatColumn
    compared: bool
    """The runs differ in their layout alone, so that ratios between them count too."""

    @property
    def group(self) -> str:
        """The model's family: what cross-validation leaves out at once."""
        return self.workload.model.family

    @property
    def stack(self) -> Stack | None:
        """See `stack_of`."""
        return stack_of(self.workload)


def points_of(workloads: Iterable[Workload]) -> list[Point]:
    """A point of every training workload with a measured time, adopted or alternative.

    Ratios count where three runs and more are comparable. Stalled runs are left out, and large
    sweeps are thinned.
    """
    found: list[Point] = []
    seen: Counter[tuple[str, str]] = Counter()
    for workload in workloads:
        runs = [m for m in _measured(workload) if _seconds(m, workload) is not None]
        kind = (workload.model.name, workload.topology.chip)
        if not workload.phase.is_training or not runs:
            continue
        seen[kind] += len(runs) > 2
        if len(runs) < 3 or seen[kind] <= _SWEEPS:
            found.append(_point(workload, runs))
    return found


def _point(workload: Workload, runs: list[Measured]) -> Point:
    seconds = np.array([_seconds(run, workload) for run in runs], dtype=np.float64)
    order = np.argsort(seconds, kind="stable")
    order = order[seconds[order] <= _STALLED * seconds.min()]
    if len(order) > _RUNS:
        order = order[np.linspace(0, len(order) - 1, _RUNS).round().astype(np.int64)]
    tables = [as_run_choices(runs[int(index)], workload) for index in order]
    comparable = sum(runs[int(index)].comparable for index in order)
    return Point(
        workload=workload,
        rows=_joined(tables),
        run=np.repeat(np.arange(len(tables)), [len(t) for t in tables]),
        measured_s=seconds[order],
        compared=comparable > 2 and comparable == len(order),
    )


def residuals(point: Point, calibration: Calibration) -> FloatColumn:
    """ln(estimate ÷ measured) of every run, float64[runs]; of open knobs the best-ranked counts."""
    found = estimate(point.rows, point.workload, calibration=calibration)
    limit = usable_hbm_bytes(point.workload)
    cost = np.log(found.step_time_s / fit_probability(found, limit))
    cost = cost + 10.0 * (found.hbm_bytes > limit)
    order = np.lexsort([cost, point.run])
    first = np.concatenate([[True], np.diff(point.run[order]) > 0])
    return np.asarray(np.log(found.step_time_s[order[first]] / point.measured_s))


def loss(points: Iterable[Point], calibration: Calibration) -> float:
    """Mean over workloads of a Huber loss of the misses, and, where runs are comparable, of the
    misses of their ratios.
    """
    found = []
    for point in points:
        misses = residuals(point, calibration)
        one = float(np.mean(_huber(misses, _KNEE)))
        if point.compared:
            apart = misses - np.median(misses)
            one = 0.5 * one + 1.5 * float(np.mean(_huber(apart, _RATIO_KNEE)))
        found.append(one)
    return float(np.mean(found)) if found else 0.0


def _huber(values: FloatColumn, knee: float) -> FloatColumn:
    size = np.abs(values)
    return np.where(size < knee, size * size / (2.0 * knee), size - knee / 2.0)


def _measured(workload: Workload) -> list[Measured]:
    """Adopted and alternatives; the adopted run once, where it stands among both."""
    adopted = workload.adopted.measured if workload.adopted is not None else None
    also = [] if adopted is None or adopted in workload.alternatives else [adopted]
    return [*also, *workload.alternatives]


def _seconds(measured: Measured, workload: Workload) -> float | None:
    if measured.step_time_s is not None:
        return measured.step_time_s
    if measured.tokens_per_s is not None:
        return workload.global_batch * workload.sequence / measured.tokens_per_s
    return None


def _joined(tables: list[LayoutTable]) -> LayoutTable:
    return LayoutTable(
        **{
            f.name: np.concatenate([getattr(t, f.name) for t in tables])
            for f in fields(LayoutTable)
        }
    )
