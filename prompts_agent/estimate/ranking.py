"""Ranking: feasibility before speed, ties broken the same way every time, and with a reason."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.estimate import Estimates
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Objective, Traffic

__all__ = [
    "FITS",
    "MAY_FIT",
    "TOO_LARGE",
    "beyond_limits",
    "costs",
    "diverse_top",
    "doublings",
    "expert_order",
    "fit_class",
    "fit_probability",
    "order",
    "tie_reason",
]

IntColumn = NDArray[np.int64]
FloatColumn = NDArray[np.float64]

FITS, MAY_FIT, TOO_LARGE = 0, 1, 2
# Layouts closer than this are tied: repeated runs of one layout differ as much.
_TIE = 0.01
_Z95 = 1.645
# No layout is a thousand times as fast as another: what breaks a limit ranks behind what keeps it.
_BEYOND = 1e3


def fit_class(estimates: Estimates, hbm_bytes: float) -> IntColumn:
    """FITS where the interval's high end is within `hbm_bytes`, TOO_LARGE where the estimate itself
    is not, MAY_FIT between; int64[n].
    """
    return np.where(
        estimates.hbm_high_bytes <= hbm_bytes,
        FITS,
        np.where(estimates.hbm_bytes <= hbm_bytes, MAY_FIT, TOO_LARGE),
    )


def fit_probability(estimates: Estimates, hbm_bytes: float) -> FloatColumn:
    """Chance that the need is within `hbm_bytes`, float64[n], from the 90% interval as a lognormal.

    An interval that ends at the limit gives 95%, an estimate at the limit 50%. The normal
    distribution is taken as a logistic of 1.702 z (Bowling et al., 2009), which is 1% off at most.
    """
    over = estimates.hbm_high_bytes / estimates.hbm_bytes
    spread = np.maximum(np.log(np.maximum(over, 1.0)) / _Z95, 1e-6)
    z = np.log(hbm_bytes / estimates.hbm_bytes) / spread
    return np.asarray(1.0 / (1.0 + np.exp(-1.702 * np.clip(z, -30.0, 30.0))))


def doublings(table: LayoutTable, baseline: Layout | None) -> FloatColumn:
    """Distance from the baseline, float64[n]: Σ |log2(degree ÷ its degree)| ÷ 2 over the axes, plus
    one for each of remat, microbatch and sequence_parallel that differs.

    Moving a factor of 2 from one axis to another is one doubling. 0 without a baseline.
    """
    if baseline is None:
        return np.zeros(len(table))
    degrees = np.stack([table.size(axis) for axis in Axis], axis=1)
    own = LayoutTable.of([baseline])
    reference = np.array([own.size(axis)[0] for axis in Axis])
    moved = np.abs(np.log2(degrees / reference)).sum(axis=1) / 2.0
    knobs = (
        (table.remat != own.remat[0]).astype(np.float64)
        + (table.microbatch != own.microbatch[0])
        + (table.sequence_parallel != own.sequence_parallel[0])
    )
    return np.asarray(moved + knobs, dtype=np.float64)


def beyond_limits(estimates: Estimates, traffic: Traffic | None) -> FloatColumn:
    """How far the worse of TTFT and TPOT is over its limit, float64[n]; 1 where both are kept, or
    none is asked for.
    """
    over = np.ones(len(estimates))
    if traffic is None:
        return over
    for name, limit in (("ttft_s", traffic.ttft_limit_s), ("tpot_s", traffic.tpot_limit_s)):
        if limit is not None and f"serving.{name}" in estimates.terms:
            over = np.maximum(over, estimates.terms[f"serving.{name}"] / limit)
    return over


def _badness(estimates: Estimates, table: LayoutTable, objective: Objective) -> FloatColumn:
    """What the objective wants small, float64[n]."""
    if objective is Objective.FIT:
        return estimates.hbm_bytes
    if objective is Objective.LATENCY:
        first = estimates.terms.get("serving.ttft_s")
        return estimates.step_time_s if first is None else first + estimates.step_time_s
    if objective is Objective.COST:
        return table.devices / estimates.tokens_per_s
    return 1.0 / estimates.tokens_per_s


def costs(
    estimates: Estimates,
    table: LayoutTable,
    *,
    hbm_bytes: float,
    objective: Objective,
    preference: FloatColumn | None = None,
    traffic: Traffic | None = None,
) -> FloatColumn:
    """What the ranking makes small, float64[n]: the objective × exp(preference) ÷ the probability
    that the layout fits, and beyond all others what breaks a limit of the traffic, the less the
    nearer. Only ratios mean anything.
    """
    bad = _badness(estimates, table, objective)
    if objective is Objective.FIT:
        return bad
    over = beyond_limits(estimates, traffic)
    bad = bad * np.where(over > 1.0, _BEYOND * over, 1.0) / fit_probability(estimates, hbm_bytes)
    return bad if preference is None else bad * np.exp(preference)


def order(
    estimates: Estimates,
    table: LayoutTable,
    *,
    hbm_bytes: float,
    objective: Objective,
    baseline: Layout | None = None,
    preference: FloatColumn | None = None,
    traffic: Traffic | None = None,
) -> IntColumn:
    """Row indices, best first: what is too large last, then by objective × exp(preference) ÷ the
    probability that the layout fits (what does not fit yields nothing), ties under 1% by
    `tie_reason`'s rules: of servers whole experts on the ranks of a replica, fewer axes, smaller
    tensor, nearer to the baseline, then the plain order of degrees.
    """
    fit = (fit_class(estimates, hbm_bytes) == TOO_LARGE).astype(np.int64)
    bad = costs(
        estimates,
        table,
        hbm_bytes=hbm_bytes,
        objective=objective,
        preference=preference,
        traffic=traffic,
    )
    group = np.zeros(len(table), dtype=np.int64)
    for label in (0, 1):
        rows = np.flatnonzero(fit == label)
        group[rows] = _tied_groups(bad[rows])
    degrees = [table.size(axis) for axis in Axis]
    axes = np.asarray(np.sum([size > 1 for size in degrees], axis=0))
    # Sorting is most of a search, so what is compared in turn shares numbers. Last key first.
    knobs = _digits(table.sequence_parallel, table.remat, table.microbatch)
    meshes = [_digits(*degrees[2::-1]), _digits(*degrees[:2:-1])]
    near = [] if baseline is None else [doublings(table, baseline)]
    simple = _digits(_expert_order(table, estimates), axes, table.size(Axis.TENSOR))
    return np.lexsort([knobs, *meshes, *near, simple, group + fit * len(table)])


def _digits(*columns: NDArray[np.int64] | NDArray[np.bool_]) -> IntColumn:
    """Up to three columns of numbers below 2^20 as one, the first the highest."""
    whole = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        whole = (whole << 20) | column
    return whole


def _expert_order(table: LayoutTable, estimates: Estimates) -> IntColumn:
    """`expert_order` of every row, int64[n]; 0 in training and where no layout shares experts."""
    expert, tensor = table.size(Axis.EXPERT), table.size(Axis.TENSOR)
    if "serving.ttft_s" not in estimates.terms or np.all(expert == 1):
        return np.zeros(len(table), dtype=np.int64)
    cut = np.where(expert == 1, 1, 2)
    return np.where(table.expert_divides & (expert < tensor), cut, 0)


def _tied_groups(bad: FloatColumn) -> IntColumn:
    """Number of the group each value falls in: a group's values are within 1% of its smallest."""
    by_value = np.argsort(bad, kind="stable")
    ordered = bad[by_value]
    groups = np.zeros(len(bad), dtype=np.int64)
    start, number = 0, 0
    while start < len(ordered):
        end = int(np.searchsorted(ordered, ordered[start] * (1.0 + _TIE), side="right"))
        groups[by_value[start:end]] = number
        start, number = max(end, start + 1), number + 1
    return groups


def tie_reason(
    better: Layout, worse: Layout, baseline: Layout | None = None, *, serving: bool = False
) -> str:
    """Why `better` stands before a layout that is estimated within 1% of it."""
    shared = max(one.mesh.size(Axis.EXPERT) for one in (better, worse)) > 1
    if serving and shared and expert_order(better) < expert_order(worse):
        return "whole experts"
    if len(better.mesh.used()) < len(worse.mesh.used()):
        return "fewer axes"
    if better.mesh.size(Axis.TENSOR) < worse.mesh.size(Axis.TENSOR):
        return "smaller tensor degree"
    pair = doublings(LayoutTable.of([better, worse]), baseline)
    if pair[0] < pair[1]:
        return "less change from the baseline"
    return "order of degrees"


def expert_order(layout: Layout) -> int:
    """How usual it is where the times of a server with experts say nothing: 0 whole experts on the
    ranks of a replica, 1 every expert cut over all of them, 2 shared by some and cut by others.
    """
    expert, tensor = layout.mesh.size(Axis.EXPERT), layout.mesh.size(Axis.TENSOR)
    if not layout.expert_divides or expert >= tensor:
        return 0
    return 1 if expert == 1 else 2


def diverse_top(
    ranked: IntColumn,
    table: LayoutTable,
    estimates: Estimates,
    *,
    hbm_bytes: float,
    count: int = 3,
    without: Layout | None = None,
    serving: bool = False,
) -> IntColumn:
    """The first `count` rows of `ranked` with different degrees, without those that cannot fit.

    Of every mesh the best choice of knobs stands for it, so that three proposals are three ideas.
    In serving, whether the ranks of a replica share its experts is one idea, and over how many not.
    `without` is the layout that runs already: it is no proposal, nor are rows of its mesh that rank
    behind it. Fewer rows come back where fewer meshes may fit.
    """
    fit = fit_class(estimates, hbm_bytes)
    rows = ranked[fit[ranked] != TOO_LARGE]
    if without is not None:
        rows = rows[~_repeats(table.take(rows), without)]
    found = rows
    # The first meshes are among the first rows nearly always.
    for seen in (1000, 30_000, len(rows)):
        found = _first_of_each(rows[:seen], table, serving=serving)
        if len(found) >= count:
            break
    return np.asarray(found[:count])


def _first_of_each(rows: IntColumn, table: LayoutTable, *, serving: bool) -> IntColumn:
    """The first row of every mesh, in order."""
    degrees = np.stack([table.size(axis)[rows] for axis in Axis], axis=1)
    if serving:
        expert = list(Axis).index(Axis.EXPERT)
        shared = table.expert_divides[rows] & (degrees[:, expert] > 1)
        degrees[shared, expert] = -1
    _, first = np.unique(degrees, axis=0, return_index=True)
    return np.asarray(rows[np.sort(first)])


def _repeats(table: LayoutTable, layout: Layout) -> NDArray[np.bool_]:
    """Rows that are `layout`, or have its mesh and come after it."""
    own = LayoutTable.of([layout])
    mesh = np.all((table.ici == own.ici[0]) & (table.dcn == own.dcn[0]), axis=1)
    knobs = mesh.copy()
    for field in fields(LayoutTable):
        if field.name not in ("ici", "dcn"):
            knobs &= getattr(table, field.name) == getattr(own, field.name)[0]
    return np.asarray(mesh & np.logical_or.accumulate(knobs))
