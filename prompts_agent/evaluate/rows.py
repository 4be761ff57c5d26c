"""Points and facts: every measured row of a workload beside its estimates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.as_run import as_run
from prompts_agent.estimate.calibration import Calibration
from prompts_agent.estimate.estimate import Estimates
from prompts_agent.estimate.estimator import usable_hbm_bytes
from prompts_agent.estimate.sizes import dtype_bytes
from prompts_agent.evaluate.score import Choice, Fact, Point
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.model.count import parameters
from prompts_agent.workload.workload import Measured, Workload

__all__ = ["as_run_table", "choice", "facts", "points", "seconds", "seconds_of"]

FloatColumn = NDArray[np.float64]

_MFU_RULE = 0.4
"""Model FLOPs utilisation of a good dense run: 38 to 43% in arXiv 2407.21783, table 4."""
_NEAR = 2.0
_LEAST_SHARE = 0.01


def as_run_table(
    rows: Sequence[Measured], workload: Workload, calibration: Calibration
) -> LayoutTable:
    """The layouts that were most likely run: knobs that a source leaves open as well set as can be
    (`estimate.as_run`), those that it states as stated.
    """
    return LayoutTable.of(
        as_run(row, workload, calibration=calibration)[0] if row.open_knobs else row.layout
        for row in rows
    )


def seconds(row: Measured, workload: Workload) -> float | None:
    """What a ranking of measured rows wants small: seconds a step, or a token of the whole pool."""
    if workload.phase.is_training and row.step_time_s is None and row.tokens_per_s is not None:
        return workload.global_batch * workload.sequence / row.tokens_per_s
    if row.step_time_s is not None:
        return row.step_time_s
    return None if row.tokens_per_s is None else 1.0 / row.tokens_per_s


def seconds_of(estimates: Estimates, workload: Workload) -> FloatColumn:
    """The same of the estimates."""
    if workload.phase.is_training:
        return estimates.step_time_s
    return np.asarray(1.0 / estimates.tokens_per_s)


def choice(
    table: LayoutTable,
    estimates: Estimates,
    workload: Workload,
    row: int,
    measured_s: float | None = None,
) -> Choice:
    """One row in words and terms."""
    layout = table.row(row)
    knobs = [
        f"microbatch {layout.microbatch}",
        f"accumulation {layout.gradient_accumulation}",
        f"remat {layout.remat}",
        f"zero {layout.zero_stage}",
        f"chunks {layout.virtual_stages}" if layout.virtual_stages > 1 else "",
        "sequence parallel" if layout.sequence_parallel else "",
    ]
    shown = knobs if workload.phase.is_training else [f"attention data {layout.attention_data}"]
    whole_s = float(estimates.step_time_s[row])
    held = float(estimates.hbm_bytes[row])
    terms = {name: float(column[row]) for name, column in estimates.terms.items()}
    kept = {
        name: _short(value)
        for name, value in terms.items()
        if abs(value) > _LEAST_SHARE * (held if name.endswith("bytes") else whole_s)
    }
    return Choice(
        layout=", ".join([str(layout), *(knob for knob in shown if knob)]),
        estimated_s=_short(float(seconds_of(estimates, workload)[row])),
        measured_s=measured_s,
        hbm_gb=round(held / 1e9, 1),
        terms=kept,
    )


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def facts(
    rows: Sequence[Measured], table: LayoutTable, estimates: Estimates, workload: Workload
) -> tuple[Fact, ...]:
    """Which rows fitted, whether we call them misfits, and whether the rule of thumb does: weights,
    gradients and optimizer state by arXiv 1910.02054 (2 + 2 + 12 bytes a parameter), or weights
    alone in serving, against the chip's memory.
    """
    limit = usable_hbm_bytes(workload)
    held = _rule_bytes(table, workload)
    return tuple(
        Fact(
            fitted=not row.out_of_memory,
            called_misfit=bool(estimates.hbm_bytes[i] > limit),
            rule_called_misfit=bool(held[i] > limit),
        )
        for i, row in enumerate(rows)
    )


def _rule_bytes(table: LayoutTable, workload: Workload) -> FloatColumn:
    total = parameters(workload.model).total
    shards = table.size(Axis.TENSOR) * table.size(Axis.PIPELINE) * table.size(Axis.FSDP)
    if not workload.phase.is_training:
        return np.asarray(dtype_bytes(workload.precision.weights) * total / shards)
    states = np.where(table.zero_stage > 0, table.size(Axis.DATA), 1)
    return np.asarray(total / shards * (4.0 + 12.0 / states))


def points(
    rows: Sequence[Measured], estimates: Estimates, plain: Estimates, workload: Workload
) -> tuple[Point, ...]:
    """Every figure that was measured and is estimated. `plain` are the uncalibrated estimates."""
    times = [seconds(row, workload) for row in rows]
    known = [time for time in times if time is not None]
    limit = _NEAR * min(known) if known else 0.0
    found: list[Point] = []
    for i, (row, time) in enumerate(zip(rows, times, strict=True)):
        near = time is not None and time <= limit
        if workload.phase.is_training:
            if time is not None:
                found.append(_step(i, time, estimates, plain, workload, near=near))
            continue
        found += _serving(i, row, estimates, plain, near=near)
    return tuple(found)


def _step(
    i: int, time: float, estimates: Estimates, plain: Estimates, workload: Workload, *, near: bool
) -> Point:
    chip = find_chip(workload.topology.chip)
    peak = chip.peak_flops.get("bf16") or max(chip.peak_flops.values())
    flops = 6.0 * parameters(workload.model).active * workload.global_batch * workload.sequence
    return Point(
        quantity="step time",
        measured=time,
        estimated=float(estimates.step_time_s[i]),
        low=float(estimates.low_s[i]),
        high=float(estimates.high_s[i]),
        uncalibrated=float(plain.step_time_s[i]),
        rule=float(flops / (_MFU_RULE * peak * workload.topology.devices)),
        near=near,
    )


def _serving(
    i: int, row: Measured, estimates: Estimates, plain: Estimates, *, near: bool
) -> list[Point]:
    found = []
    if row.tokens_per_s is not None:
        rate = float(estimates.tokens_per_s[i])
        middle = float(estimates.step_time_s[i])
        found.append(
            Point(
                quantity="throughput",
                measured=row.tokens_per_s,
                estimated=rate,
                low=rate * middle / float(estimates.high_s[i]),
                high=rate * middle / float(estimates.low_s[i]),
                uncalibrated=float(plain.tokens_per_s[i]),
                near=near,
            )
        )
    if row.ttft_s is not None and "serving.ttft_s" in estimates.terms:
        found.append(
            Point(
                quantity="ttft",
                measured=row.ttft_s,
                estimated=float(estimates.terms["serving.ttft_s"][i]),
                low=None if estimates.ttft_low_s is None else float(estimates.ttft_low_s[i]),
                high=None if estimates.ttft_high_s is None else float(estimates.ttft_high_s[i]),
                uncalibrated=float(plain.terms["serving.ttft_s"][i]),
                near=near,
            )
        )
    if row.tpot_s is not None and "serving.tpot_s" in estimates.terms:
        found.append(
            Point(
                quantity="tpot",
                measured=row.tpot_s,
                estimated=float(estimates.terms["serving.tpot_s"][i]),
                low=float(estimates.low_s[i]),
                high=float(estimates.high_s[i]),
                uncalibrated=float(plain.terms["serving.tpot_s"][i]),
                near=near,
            )
        )
    return found
