"""Fit of the serving constants: coordinate search over what pools of GPUs served.

The constants that all servers share and those that are one software's are fitted together, because
a pool of one software says little of either alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Calibration, Constant, Stack
from prompts_agent.estimate.fit import residuals_of
from prompts_agent.estimate.fit_training import Fitted, Free, plain, searched
from prompts_agent.estimate.memory import memory_terms
from prompts_agent.estimate.serving import serving_times
from prompts_agent.estimate.setting import Setting, setting
from prompts_agent.estimate.stack import stack_of
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Measured, Phase, Workload

__all__ = ["Served", "fit_serving", "left_out", "misses", "served"]

FloatColumn = NDArray[np.float64]

_KNEE = 0.1
_LATENCY_KNEE = 0.3
_SOURCE = "fitted to public pools of GPUs (prompts calibrate fit)"
_WHAT = ("tokens_per_s", "tpot_s", "ttft_s")
# A server that queued for half a minute measured its limit on requests, which no source states.
_STUCK_S = 30.0

_SHARED = (
    Free("serving_hbm_efficiency", 0.85, 0.4),
    Free("serving_matmul_efficiency", 0.7, 0.4),
    Free("low_precision_efficiency", 0.8, 0.5),
    Free("serving_expert_efficiency", 0.7, 0.5),
    Free("serving_grouped_efficiency", 0.5, 0.7),
    Free("expert_spread", 0.6, 0.7),
    Free("expert_row_touches", 10.0, 0.7),
    Free("reduce_latency_s", 2e-6, 0.7),
    Free("link_efficiency", 0.7, 0.5),
    Free("latent_latency_s", 2e-5, 0.7),
    Free("exchange_latency_s", 5e-5, 0.7),
)
_OWN = (
    Free("layer_latency_s", 4e-5, 0.7),
    Free("serving_overhead_s", 1e-3, 0.7),
    Free("sequence_overhead_s", 2e-5, 0.7),
    Free("prompt_queue", 0.5, 0.5),
)
_SERVERS: tuple[Stack, ...] = ("vllm", "tensorrt-llm", "sglang")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One traffic on one pool: the layouts that served it, and what was measured of each."""

    at: Setting
    stack: Stack
    measured: dict[str, FloatColumn]
    """Of `_WHAT`, float64[rows]; NaN where it was not measured."""
    weight: float

    @property
    def group(self) -> str:
        """The model's family: what cross-validation leaves out at once."""
        return self.at.workload.model.family


def served(workloads: Iterable[Workload], start: Calibration) -> list[Served]:
    """Of every workload of mixed serving or decode on GPUs the rows whose throughput was measured.

    Loads of one server are many rows that say the same: together they count as the root of their
    number.
    """
    found = []
    for workload in workloads:
        rows = [row for row in _measured(workload) if _counts(row)]
        gpu = find_chip(workload.topology.chip).platform == "gpu"
        stack = stack_of(workload)
        served_here = workload.phase in (Phase.SERVE, Phase.DECODE)
        if not served_here or not gpu or not rows or stack is None:
            continue
        at = setting(LayoutTable.of([row.layout for row in rows]), workload, start)
        columns = {
            name: np.array([getattr(row, name) or np.nan for row in rows], dtype=np.float64)
            for name in _WHAT
        }
        found.append(Served(at=at, stack=stack, measured=columns, weight=1.0))
    like = Counter(_like(one) for one in found)
    return [replace(one, weight=like[_like(one)] ** -0.5) for one in found]


def misses(one: Served, calibration: Calibration) -> dict[str, FloatColumn]:
    """ln(estimate ÷ measured) of throughput, TPOT and TTFT, float64[rows]; NaN where unknown."""
    constants = calibration.constants("gpu", one.stack)
    faster = constants.link_efficiency / one.at.constants.link_efficiency
    links = replace(one.at.links, bandwidth_bytes_per_s=one.at.links.bandwidth_bytes_per_s * faster)
    at = replace(one.at, constants=constants, links=links)
    times = serving_times(at, memory_terms(at)["kv_cache"])
    return {name: np.log(times[name] / one.measured[name]) for name in _WHAT}


def fit_serving(points: Sequence[Served], start: Calibration, *, passes: int = 3) -> Calibration:
    """`start` with the constants of `_SHARED`, and of `_OWN` for each server that has points,
    fitted; deterministic. The same search as in training.
    """
    if not points:
        return start
    stacks = [stack for stack in _SERVERS if any(one.stack == stack for one in points)]
    free = [(None, one) for one in _SHARED] + [(s, one) for s in stacks for one in _OWN]

    def miss(values: list[float]) -> float:
        return _loss(points, _with(start, free, values))

    return _with(start, free, searched([one for _, one in free], miss, passes=passes))


def left_out(
    points: Sequence[Served], start: Calibration, *, passes: int = 3
) -> tuple[Calibration, Fitted]:
    """The fit with all points, whose interval is that of a fit without each model family; and how
    far seconds a token are missed both ways.
    """
    whole = fit_serving(points, start, passes=passes)
    apart: dict[str, list[FloatColumn]] = {name: [] for name in _WHAT}
    for group in sorted({one.group for one in points}):
        rest = fit_serving([one for one in points if one.group != group], start, passes=passes)
        for one in points:
            if one.group == group:
                for name, missed in misses(one, rest).items():
                    apart[name].append(missed[np.isfinite(missed)])
    near = np.concatenate([misses(one, whole)["tokens_per_s"] for one in points])
    source = "pools of GPUs, each model family left out in turn; TPUs borrow it"
    kept = residuals_of(-np.concatenate(apart["tokens_per_s"]), source)
    first = np.concatenate(apart["ttft_s"])
    # Where no first token was timed, its interval stays what it was.
    ttft = residuals_of(first, source) if len(first) else start.ttft
    known = whole.model_copy(update={"serving": kept, "ttft": ttft})
    return known, Fitted(known, residuals_of(-near, "fitted on the same pools"), kept)


def _loss(points: Sequence[Served], calibration: Calibration) -> float:
    """Weighted mean of a Huber loss of throughput, of its ratios between the layouts of one
    traffic, and, much less, of both latencies, whose split a benchmark's arrivals decide.
    """
    total = weights = 0.0
    for one in points:
        missed = misses(one, calibration)
        rate = missed["tokens_per_s"]
        value = float(np.mean(_huber(rate, _KNEE)))
        if len(rate) > 1:
            value += float(np.mean(_huber(rate - np.median(rate), _KNEE)))
        for name, share in (("tpot_s", 0.2), ("ttft_s", 0.1)):
            known = missed[name][np.isfinite(missed[name])]
            value += share * float(np.mean(_huber(known, _LATENCY_KNEE))) if len(known) else 0.0
        total += one.weight * value
        weights += one.weight
    return total / weights


def _huber(values: FloatColumn, knee: float) -> FloatColumn:
    size = np.abs(values)
    return np.where(size < knee, size * size / (2.0 * knee), size - knee / 2.0)


def _with(
    start: Calibration,
    free: Sequence[tuple[Stack | None, Free]],
    values: Sequence[float],
) -> Calibration:
    """Shared constants are every server's own entries: trainers on GPUs have others."""
    stacks = {name: dict(entries) for name, entries in start.stacks.items()}
    for (stack, one), value in zip(free, values, strict=True):
        entry = Constant(value=plain(one, value), source=_SOURCE)
        for name in _SERVERS if stack is None else (stack,):
            stacks.setdefault(name, {})[one.name] = entry
    return start.model_copy(update={"stacks": stacks})


def _measured(workload: Workload) -> list[Measured]:
    adopted = workload.adopted.measured if workload.adopted is not None else None
    also = [] if adopted is None or adopted in workload.alternatives else [adopted]
    return [*also, *workload.alternatives]


def _counts(row: Measured) -> bool:
    stuck = row.ttft_s is not None and row.ttft_s > _STUCK_S
    return row.tokens_per_s is not None and not stuck


def _like(one: Served) -> tuple[str, str, str, str]:
    workload = one.at.workload
    chip, weights = workload.topology.chip, workload.precision.weights
    return workload.model.name, chip, weights, one.stack
