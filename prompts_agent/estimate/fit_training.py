"""Fit of the training constants: coordinate search over public step times, with cross-validation.

Shares move on a logit scale and the rest on a log scale, so that no step leaves the legal range.
Each constant is pulled to its start (a data sheet's or a paper's figure, `START`) by the width that
stands beside it: what no measurement separates stays where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Calibration, Constant, Residuals, Stack
from prompts_agent.estimate.fit import residuals_of
from prompts_agent.estimate.fit_points import Point, loss, residuals

__all__ = [
    "START",
    "Fitted",
    "Free",
    "cross_validated",
    "fit_constants",
    "plain",
    "searched",
]

FloatColumn = NDArray[np.float64]

_PULL = 0.01
_STEP = 0.5
_SOURCE = "fitted to public step times (prompts calibrate fit)"


class Free(NamedTuple):
    """A constant that is fitted: its start, and how far it may stray (on its own scale)."""

    name: str
    start: float
    width: float
    chip: str | None = None
    """A chip's own value; None: the stack's or the platform's."""

    @property
    def share(self) -> bool:
        """Between 0 and 1."""
        return "_overlap" in self.name or self.name.endswith(("_efficiency", "_spread"))


_COMMON = (
    Free("matmul_efficiency", 0.7, 0.4),
    Free("attention_efficiency", 0.5, 0.5),
    Free("hbm_efficiency", 0.7, 0.5),
    Free("network_efficiency", 0.7, 0.7),
    Free("straggle", 0.004, 0.7),
)
_LAUNCH = Free("layer_floor_s", 1e-3, 1.0)
_LINK = Free("link_efficiency", 0.75, 0.5)
_NARROW = Free("low_precision_efficiency", 0.75, 0.6)
_TENSOR = Free("tensor_overlap_sharded", 0.5, 0.8)
START: dict[Stack | None, tuple[Free, ...]] = {
    None: (
        *_COMMON,
        Free("link_efficiency", 0.85, 0.4),
        Free("fsdp_overlap", 0.9, 0.7),
        _TENSOR,
        Free("low_precision_efficiency", 0.7, 0.7),
        Free("grouped_efficiency", 0.8, 0.7),
        Free("chip_share", 1.1, 0.1, "v5p"),
        Free("chip_share", 1.1, 0.1, "v5e"),
        Free("chip_share", 1.05, 0.1, "v4"),
    ),
    "megatron": (
        *_COMMON, _LAUNCH, _LINK, _NARROW, _TENSOR,
        Free("grouped_efficiency", 0.7, 0.7),
        Free("data_overlap", 0.7, 0.8),
        Free("data_overlap_sharded", 0.7, 0.8),
        Free("pipeline_overlap", 0.7, 0.8),
        Free("expert_imbalance", 0.1, 0.7),
        Free("expert_overlap", 0.2, 0.8),
        Free("expert_overlap_staged", 0.8, 0.8),
        Free("context_split", 0.1, 0.7),
        Free("fsdp_overlap", 0.7, 0.7),
        Free("chip_share", 0.85, 0.12, "gb200"),
        Free("chip_share", 0.85, 0.12, "b200"),
    ),
    "eager": (
        Free("matmul_efficiency", 0.5, 0.2),
        Free("attention_efficiency", 0.4, 0.3),
        Free("hbm_efficiency", 0.6, 0.3),
        Free("network_efficiency", 0.25, 0.3),
        Free("straggle", 0.009, 0.4),
        Free("layer_floor_s", 5e-3, 0.4),
        Free("link_efficiency", 0.55, 0.3),
        Free("tensor_overlap_sharded", 0.3, 0.4),
        Free("data_overlap", 0.4, 0.3),
        Free("data_overlap_sharded", 0.1, 0.3),
        Free("network_latency_s", 5e-6, 0.2),
        Free("pipeline_overlap", 0.3, 0.4),
        Free("matmul_half_extent", 128.0, 0.3),
    ),
    "classic": (
        *_COMMON, _LAUNCH, _LINK, _TENSOR,
        Free("tensor_overlap", 0.1, 0.8),
        Free("data_overlap", 0.3, 0.8),
        Free("data_overlap_sharded", 0.3, 0.8),
        Free("pipeline_overlap", 0.3, 0.8),
        Free("matmul_half_extent", 64.0, 0.6),
        Free("chip_share", 1.15, 0.1, "a100-80"),
        Free("chip_share", 1.15, 0.1, "a100-40"),
    ),
    "xla": (*_COMMON, _LAUNCH, _NARROW, Free("fsdp_overlap", 0.9, 0.7)),
    "fsdp": (*_COMMON, _LAUNCH, _LINK, Free("fsdp_overlap", 0.8, 0.8)),
}  # fmt: skip
"""What is fitted of each stack (None: TPUs), and from where."""


class Fitted(NamedTuple):
    """A calibration, and how far it misses: plainly, and with each group left out of its fit."""

    calibration: Calibration
    plain: Residuals
    cross_validated: Residuals


def fit_constants(
    points: Sequence[Point], start: Calibration, stack: Stack | None, *, passes: int = 3
) -> Calibration:
    """`start` with the constants of `stack` fitted to those of `points` that run on it.

    Every constant is moved up or down by its step while that helps; a step that helps neither way
    is halved. Deterministic.
    """
    own = [point for point in points if point.stack == stack]
    free = START[stack]

    def miss(values: list[float]) -> float:
        return loss(own, _with(start, stack, free, values))

    return _with(start, stack, free, searched(free, miss, passes=passes if own else 0))


def searched(
    free: Sequence[Free], miss: Callable[[list[float]], float], *, passes: int
) -> list[float]:
    """The values of `free`, each on its own scale, that make `miss` and the pull to their starts
    least: every constant is walked along while that helps, `passes` times over.
    """
    place = [_scaled(one, one.start) for one in free]
    origin = list(place)

    def total(values: list[float]) -> float:
        pull = sum(
            ((v - o) / one.width) ** 2 for v, o, one in zip(values, origin, free, strict=True)
        )
        return miss(values) + _PULL * pull / len(free)

    best = total(place)
    steps = [_STEP * one.width for one in free]
    for _ in range(passes):
        for index in range(len(free)):
            place, best, moved = _line(total, place, best, index, steps[index])
            steps[index] *= 1.0 if moved else 0.5
    return place


def cross_validated(
    points: Iterable[Point], start: Calibration, stack: Stack | None, *, passes: int = 1
) -> Fitted:
    """Fit with all points of `stack`, and once without each model family; raises `ValueError` where
    there are none.
    """
    own = [point for point in points if point.stack == stack]
    whole = fit_constants(own, start, stack, passes=passes)
    apart = []
    for group in sorted({point.group for point in own}):
        rest = [point for point in own if point.group != group]
        left_out = fit_constants(rest, start, stack, passes=passes)
        apart += [residuals(point, left_out) for point in own if point.group == group]
    if not apart:
        raise ValueError(f"no measured point of {stack or 'tpu'}")
    plain = np.concatenate([residuals(point, whole) for point in own])
    return Fitted(
        whole,
        residuals_of(plain, "fitted on the same points"),
        residuals_of(np.concatenate(apart), "each model family left out in turn"),
    )


def _line(
    total: Callable[[list[float]], float],
    place: list[float],
    best: float,
    index: int,
    step: float,
) -> tuple[list[float], float, bool]:
    """Walks along one constant while the loss falls: (place, loss, whether it moved)."""
    for direction in (1.0, -1.0):
        moved = False
        while True:
            trial = list(place)
            trial[index] += direction * step
            value = total(trial)
            if not value < best - 1e-6:
                break
            place, best, moved = trial, value, True
        if moved:
            return place, best, True
    return place, best, False


def _scaled(one: Free, value: float) -> float:
    """`value` on the scale that its steps have: logit of a share, else ln."""
    return math.log(value / (1.0 - value)) if one.share else math.log(value)


def plain(one: Free, value: float) -> float:
    """A value on its scale, as the constant that it stands for."""
    return 1.0 / (1.0 + math.exp(-value)) if one.share else math.exp(value)


def _with(
    start: Calibration, stack: Stack | None, free: Sequence[Free], values: Sequence[float]
) -> Calibration:
    platforms, stacks, chips = dict(start.platforms), dict(start.stacks), dict(start.chips)
    for one, value in zip(free, values, strict=True):
        entry = Constant(value=plain(one, value), source=_SOURCE)
        if one.chip is not None:
            chips[one.chip] = chips.get(one.chip, {}) | {one.name: entry}
        elif stack is None:
            platforms["tpu"] = platforms["tpu"] | {one.name: entry}
        else:
            stacks[stack] = stacks.get(stack, {}) | {one.name: entry}
    return start.model_copy(update={"platforms": platforms, "stacks": stacks, "chips": chips})
