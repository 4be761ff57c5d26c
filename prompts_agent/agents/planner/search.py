"""Search: every legal layout, estimated and ranked; the best choice of knobs of each mesh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.report import Predicted, RankFactors
from prompts_agent.agents.report import Search as SearchCount
from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.estimate.estimate import Estimates
from prompts_agent.estimate.estimator import estimate, rank, usable_hbm_bytes
from prompts_agent.estimate.preference import preference
from prompts_agent.estimate.ranking import FITS, diverse_top, fit_class, fit_probability
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Measured, Objective, Phase, Workload

__all__ = ["Found", "assess", "place_among", "search"]

_ROOMIER_MESHES = 8
_ROOMIER_SHARES = (0.85, 0.7, 0.5)
SPARE = 24
"""Meshes handed to the planner: those on the table and replacements for the rounds after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search came back with. `others` holds the best candidate of each other objective."""

    candidates: tuple[Candidate, ...]
    today: Candidate | None
    today_measured: bool
    """Predictions are today's measured step × the ratio of two estimates."""
    scale: float | None = None
    """Today's step as predicted ÷ by formulas alone; None where nothing was measured."""
    surely_fits: bool
    """At least one layout's upper memory estimate fits."""
    count: SearchCount
    others: dict[Objective, Candidate]
    roomier: dict[Layout, tuple[Candidate, ...]] = field(default_factory=dict)
    """Of the first meshes, and keyed by each layout of theirs: the same mesh with knobs that need
    less memory, most promising first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """The legal layouts with their estimates. `ratio` has the interval of a ratio to today's."""

    workload: Workload
    table: LayoutTable
    estimates: Estimates
    ratio: Estimates
    today: Candidate | None

    def best(self, objective: Objective, count: int) -> NDArray[np.int64]:
        ranked = rank(self.estimates, self.table, self.workload, objective)
        limit = usable_hbm_bytes(self.workload)
        return diverse_top(
            ranked,
            self.table,
            self.estimates,
            hbm_bytes=limit,
            count=count,
            serving=not self.workload.phase.is_training,
        )

    def candidate(self, row: int) -> Candidate:
        return _candidate(self.table, self.estimates, self.ratio, row, self.workload, self.today)


def search(workload: Workload) -> Found:
    """Enumerates, estimates and ranks; deterministic for one workload.

    Where today's layout and its step time are known, times are calibrated to them.
    """
    listed = enumerate_layouts(search_space(workload))
    measured = _usable_measurement(workload)
    estimates = estimate(listed.table, workload, measured_baseline=measured)
    today = _today(workload, measured)
    pool = _Pool(
        workload=workload,
        table=listed.table,
        estimates=estimates,
        ratio=_against(today, workload, listed.table, measured) or estimates,
        today=today,
    )
    fit = fit_class(estimates, usable_hbm_bytes(workload)) == FITS
    rows = pool.best(workload.objective, SPARE)
    candidates = tuple(pool.candidate(int(row)) for row in rows)
    other = _other(workload.objective)
    return Found(
        candidates=candidates,
        roomier=_roomier(pool, rows[:_ROOMIER_MESHES].tolist()),
        today=today,
        today_measured=measured is not None,
        scale=_scale(today, workload) if measured is not None else None,
        surely_fits=bool(np.any(fit)),
        count=SearchCount(
            legal=len(listed.table), fit=int(np.sum(fit)), considered=listed.considered
        ),
        others=dict(zip([other], map(pool.candidate, pool.best(other, 1).tolist()), strict=False)),
    )


def _scale(today: Candidate | None, workload: Workload) -> float | None:
    if today is None or today.predicted.step_time_s is None:
        return None
    alone = estimate(LayoutTable.of([today.layout]), workload)
    return today.predicted.step_time_s / float(alone.step_time_s[0])


def _roomier(pool: _Pool, rows: list[int]) -> dict[Layout, tuple[Candidate, ...]]:
    """Knobs that the estimate says need 0.85, 0.7 and 0.5 of the memory of a mesh's best ones: what
    a compiler refuses is most often a tenth to a half too large.
    """
    ranked = rank(pool.estimates, pool.table, pool.workload)
    held = pool.estimates.hbm_bytes
    found: dict[Layout, tuple[Candidate, ...]] = {}
    for row in rows:
        same = np.all(
            (pool.table.ici == pool.table.ici[row]) & (pool.table.dcn == pool.table.dcn[row]),
            axis=1,
        )
        mesh = ranked[same[ranked]]
        below = [mesh[held[mesh] <= share * held[row]] for share in _ROOMIER_SHARES]
        chosen = dict.fromkeys(int(some[0]) for some in below if len(some))
        line = [pool.candidate(other) for other in chosen]
        found[pool.table.row(row)] = tuple(line)
        found |= {one.layout: tuple(line[k + 1 :]) for k, one in enumerate(line)}
    return found


def assess(workload: Workload, layouts: Sequence[Layout]) -> tuple[Candidate, ...]:
    """The same estimates of these legal layouts, in their order."""
    measured = _usable_measurement(workload)
    today = _today(workload, measured)
    table = LayoutTable.of(layouts)
    estimates = estimate(table, workload, measured_baseline=measured)
    ratio = _against(today, workload, table, measured) or estimates
    return tuple(
        _candidate(table, estimates, ratio, row, workload, today) for row in range(len(layouts))
    )


def place_among(workload: Workload, layout: Layout, others: Sequence[Layout]) -> int:
    """Where the ranking puts `layout` among `others`, from 1."""
    table = LayoutTable.of([layout, *others])
    estimates = estimate(table, workload, measured_baseline=_usable_measurement(workload))
    return 1 + list(rank(estimates, table, workload)).index(0)


def _other(objective: Objective) -> Objective:
    """The objective that pulls the other way."""
    return Objective.THROUGHPUT if objective is Objective.LATENCY else Objective.LATENCY


def _usable_measurement(workload: Workload) -> Measured | None:
    """Today's measurement, where it is one of today's layout on these devices and has a time."""
    measured = workload.baseline_measured
    if measured is None or workload.baseline is None or measured.layout != workload.baseline:
        return None
    if measured.layout.devices != workload.topology.devices:
        return None
    times = {
        Phase.PREFILL: (measured.ttft_s,),
        Phase.DECODE: (measured.tpot_s,),
        Phase.SERVE: (measured.tpot_s,),
    }.get(workload.phase, (measured.step_time_s, measured.tokens_per_s))
    return measured if any(times) else None


def _today(workload: Workload, measured: Measured | None) -> Candidate | None:
    if workload.baseline is None or workload.baseline.devices != workload.topology.devices:
        return None
    table = LayoutTable.of([workload.baseline])
    estimates = estimate(table, workload, measured_baseline=measured)
    return _candidate(table, estimates, estimates, 0, workload, None)


def _against(
    today: Candidate | None, workload: Workload, table: LayoutTable, measured: Measured | None
) -> Estimates | None:
    """Estimates whose interval is that of a ratio to today's layout, where nothing was measured.

    Without a measurement a step time is uncertain in absolute terms, but a ratio of two estimates
    is not as much: errors that both share cancel.
    """
    if today is None or measured is not None:
        return None
    step = today.predicted.step_time_s
    as_if = Measured(
        layout=today.layout, step_time_s=step, ttft_s=step, tpot_s=step, source="its own estimate"
    )
    return estimate(table, workload, measured_baseline=as_if)


def _candidate(
    table: LayoutTable,
    estimates: Estimates,
    ratio: Estimates,
    row: int,
    workload: Workload,
    today: Candidate | None,
) -> Candidate:
    tokens = float(estimates.tokens_per_s[row])
    step, low, high = (
        float(column[row]) for column in (estimates.step_time_s, estimates.low_s, estimates.high_s)
    )
    gain = None
    if today is not None and today.predicted.tokens_per_s:
        gain = tokens / today.predicted.tokens_per_s
    # Throughput goes as one over the step, so the interval carries over with its ends swapped.
    widest = float(ratio.step_time_s[row]) / float(ratio.high_s[row])
    narrowest = float(ratio.step_time_s[row]) / float(ratio.low_s[row])
    return Candidate(
        layout=table.row(row),
        predicted=Predicted(
            step_time_s=step,
            low_s=low,
            high_s=high,
            hbm_bytes=round(float(estimates.hbm_bytes[row])),
            hbm_limit_bytes=round(usable_hbm_bytes(workload)),
            tokens_per_s=tokens,
            speedup=gain,
            speedup_low=None if gain is None else gain * widest,
            speedup_high=None if gain is None else gain * narrowest,
            ttft_low_s=_entry(estimates.ttft_low_s, row),
            ttft_high_s=_entry(estimates.ttft_high_s, row),
        ),
        hbm_high_bytes=round(float(estimates.hbm_high_bytes[row])),
        terms={name: float(column[row]) for name, column in sorted(estimates.terms.items())},
        factors=_factors(table, estimates, row, workload),
    )


def _entry(column: NDArray[np.float64] | None, row: int) -> float | None:
    return None if column is None else float(column[row])


def _factors(table: LayoutTable, estimates: Estimates, row: int, workload: Workload) -> RankFactors:
    """What the ranking multiplied this row's objective by."""
    chance = fit_probability(estimates.row(row), usable_hbm_bytes(workload))[0]
    bias = preference(table.take(np.array([row])), workload, load_calibration())[0]
    return RankFactors(fit_probability=float(chance), preference=float(np.exp(bias)))
