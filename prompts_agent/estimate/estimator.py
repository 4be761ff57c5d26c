"""Estimator: step time, memory and their intervals for every row of a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Calibration, load_calibration
from prompts_agent.estimate.estimate import Estimates
from prompts_agent.estimate.memory import memory_terms
from prompts_agent.estimate.preference import preference
from prompts_agent.estimate.ranking import costs, diverse_top, doublings, order
from prompts_agent.estimate.serving import serving_times
from prompts_agent.estimate.setting import Setting, setting
from prompts_agent.estimate.step_time import step_time
from prompts_agent.estimate.trace_calibration import calibrate_to
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Measured, Objective, Phase, Workload

__all__ = ["estimate", "propose", "rank", "ranking_costs", "usable_hbm_bytes"]

FloatColumn = NDArray[np.float64]
IntColumn = NDArray[np.int64]

# Rows worked on at once: their columns stay in a core's cache.
_CHUNK = 16384


def usable_hbm_bytes(workload: Workload) -> float:
    """HBM that a program can be given on one device of the workload's chip."""
    chip = find_chip(workload.topology.chip)
    return float(chip.usable_hbm_bytes or chip.hbm_bytes)


def estimate(
    table: LayoutTable,
    workload: Workload,
    *,
    calibration: Calibration | None = None,
    measured_baseline: Measured | None = None,
) -> Estimates:
    """Predict every row. Terms are named `time.*_s`, `memory.*_bytes` and `serving.*_s`; of mixed
    serving `load.running_sequences` is how many a replica works on at once.

    With `measured_baseline` (its step time, or TPOT, or tokens/s) the predictions are scaled to it
    and the interval is that of a ratio; without, it is that of an absolute prediction, wider the
    farther a row lies from the workload's baseline layout.
    """
    known = calibration or load_calibration()
    parts = [
        _estimate(table.take(np.arange(start, min(start + _CHUNK, len(table)))), workload, known)
        for start in range(0, max(len(table), 1), _CHUNK)
    ]
    whole = parts[0] if len(parts) == 1 else _joined(parts)
    if measured_baseline is None:
        return whole
    measured = _measured_s(measured_baseline, workload)
    if measured is None:
        return whole
    return calibrate_to(
        whole,
        measured_step_s=measured,
        baseline=_estimate(LayoutTable.of([measured_baseline.layout]), workload, known),
        doublings=doublings(table, measured_baseline.layout),
        residuals=known.ratio_per_doubling,
    )


def rank(
    estimates: Estimates,
    table: LayoutTable,
    workload: Workload,
    objective: Objective | None = None,
    calibration: Calibration | None = None,
) -> IntColumn:
    """Row indices, best first, for `objective` (the workload's own by default)."""
    return order(
        estimates,
        table,
        hbm_bytes=usable_hbm_bytes(workload),
        objective=objective or workload.objective,
        baseline=workload.baseline,
        preference=preference(table, workload, calibration or load_calibration()),
        traffic=workload.traffic,
    )


def ranking_costs(
    estimates: Estimates,
    table: LayoutTable,
    workload: Workload,
    calibration: Calibration | None = None,
) -> FloatColumn:
    """What `rank` orders by, before ties, float64[n]."""
    return costs(
        estimates,
        table,
        hbm_bytes=usable_hbm_bytes(workload),
        objective=workload.objective,
        preference=preference(table, workload, calibration or load_calibration()),
        traffic=workload.traffic,
    )


def propose(
    estimates: Estimates,
    table: LayoutTable,
    workload: Workload,
    *,
    count: int = 3,
    calibration: Calibration | None = None,
) -> IntColumn:
    """The best `count` rows with different meshes that may fit, best first, without the
    baseline.
    """
    return diverse_top(
        rank(estimates, table, workload, calibration=calibration),
        table,
        estimates,
        hbm_bytes=usable_hbm_bytes(workload),
        count=count,
        without=workload.baseline,
        serving=not workload.phase.is_training,
    )


def _estimate(table: LayoutTable, workload: Workload, calibration: Calibration) -> Estimates:
    at = setting(table, workload, calibration)
    held = memory_terms(at)
    terms = {f"memory.{name}_bytes": value for name, value in held.items()}
    if workload.phase.is_training:
        times = step_time(at, held)
        step = np.sum(list(times.values()), axis=0)
        tokens = workload.global_batch * workload.sequence / step
        terms |= {f"time.{name}": value for name, value in times.items()}
    else:
        times = serving_times(at, held["kv_cache"])
        tokens = times.pop("tokens_per_s")
        step = times["ttft_s" if workload.phase is Phase.PREFILL else "tpot_s"]
        for name in ("running_sequences", "utilisation"):
            if name in times:
                terms[f"load.{name}"] = times.pop(name)
        terms |= {f"serving.{name}": value for name, value in times.items()}
    return _with_intervals(at, step, tokens, held, terms, calibration)


def _with_intervals(
    at: Setting,
    step: FloatColumn,
    tokens: FloatColumn,
    held: dict[str, FloatColumn],
    terms: dict[str, FloatColumn],
    calibration: Calibration,
) -> Estimates:
    """The 90% intervals of the residuals, that of the time widened by the distance from the
    baseline.
    """
    platform = at.chip.platform
    training = at.workload.phase.is_training
    times = calibration.step_time[platform] if training else calibration.serving
    if training and at.stack is not None:
        times = calibration.step_time.get(at.stack, times)
    needs = calibration.hbm[platform]
    if at.stack is not None:
        needs = calibration.hbm.get(at.stack, needs)
    apart = calibration.ratio_per_doubling.p90 * doublings(at.table, at.workload.baseline)
    hbm = np.sum(list(held.values()), axis=0)
    first = terms.get("serving.ttft_s")
    return Estimates(
        step_time_s=step,
        low_s=step * np.exp(-np.hypot(times.low, apart)),
        high_s=step * np.exp(np.hypot(times.high, apart)),
        hbm_bytes=hbm,
        hbm_low_bytes=hbm * np.exp(needs.low),
        hbm_high_bytes=hbm * np.exp(needs.high),
        tokens_per_s=tokens,
        terms=terms,
        ttft_low_s=None if first is None else first * np.exp(calibration.ttft.low),
        ttft_high_s=None if first is None else first * np.exp(calibration.ttft.high),
    )


def _joined(parts: list[Estimates]) -> Estimates:
    def column(name: str) -> FloatColumn:
        return np.concatenate([getattr(part, name) for part in parts])

    serves = parts[0].ttft_low_s is not None

    return Estimates(
        step_time_s=column("step_time_s"),
        low_s=column("low_s"),
        high_s=column("high_s"),
        hbm_bytes=column("hbm_bytes"),
        hbm_low_bytes=column("hbm_low_bytes"),
        hbm_high_bytes=column("hbm_high_bytes"),
        tokens_per_s=column("tokens_per_s"),
        terms={
            name: np.concatenate([part.terms[name] for part in parts]) for name in parts[0].terms
        },
        ttft_low_s=column("ttft_low_s") if serves else None,
        ttft_high_s=column("ttft_high_s") if serves else None,
    )


def _measured_s(measured: Measured, workload: Workload) -> float | None:
    """Seconds of what `Estimates.step_time_s` predicts, from whichever figure was measured."""
    if not workload.phase.is_training:
        return measured.ttft_s if workload.phase is Phase.PREFILL else measured.tpot_s
    if measured.step_time_s is not None:
        return measured.step_time_s
    if measured.tokens_per_s is not None:
        return workload.global_batch * workload.sequence / measured.tokens_per_s
    return None
