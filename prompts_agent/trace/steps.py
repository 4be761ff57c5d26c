"""Steps where no device program marks them: from annotations, or from what repeats."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Steps", "annotated_steps", "profiler_step", "repeating_steps"]

_PROFILER_STEP = re.compile(r"ProfilerStep\s*#?\s*(\d{1,18})?")
_STEP_LIKE = re.compile(
    r"(?:train|forward|model|engine|decode|prefill|run|execute|jit|tsl:xlamodule|step|iter)"
    r"|\bstep\b|iteration",
    re.IGNORECASE,
)
_NOT_A_STEP = re.compile(r"nccl|Optimizer\.|zero_grad|DataLoader|CompiledFxGraph|record_param")

_MIN_REPEATS = 3
_REGULAR = 0.25
"""Largest median deviation of the periods from their median for a pattern to count as steps."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Start and duration of each step in one unit of time, and where they come from."""

    spans: list[tuple[float, float]]
    source: str


def profiler_step(name: str) -> int | None:
    """The number in `ProfilerStep#12`; -1 without a number; None for other names."""
    match = _PROFILER_STEP.match(name)
    if match is None:
        return None
    return int(match[1]) if match[1] else -1


def annotated_steps(annotations: Iterable[tuple[str, float, float]]) -> Steps | None:
    """The repeated annotation (name, start, duration) that is named like a step, of most time.

    Names are compared with their numbers blanked (`step[DECODE bs=15]`, `iteration 7`).
    """
    groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, start, duration in annotations:
        if _STEP_LIKE.match(name) and not _NOT_A_STEP.search(name):
            groups[re.sub(r"\d+", "#", name)].append((start, duration))
    best = max(groups.items(), key=lambda item: sum(d for _, d in item[1]), default=None)
    if best is None or len(best[1]) < _MIN_REPEATS:
        return None
    name, found = best[0], sorted(best[1])
    if any(first + length > later for (first, length), (later, _) in itertools.pairwise(found)):
        return None  # nested or concurrent: no steps of one loop
    return Steps(found, f"annotation {name!r}")


def repeating_steps(kernels: Sequence[tuple[str, float, float]]) -> Steps | None:
    """Steps from kernels and copies (name, start, duration), sorted by start, that recur.

    If n steps ran, what runs in each layer ran n × layers times and what runs once a step n times,
    so n is the greatest common divisor of all counts: strictly all, because the layers of a single
    step, with one embedding lookup before them, must not pass for steps. A kernel with exactly
    that count, evenly spaced, marks the starts. None where n < 3 or the spacing is uneven.
    """
    counts = Counter(name for name, _, _ in kernels)
    repeats = math.gcd(*counts.values())
    anchor = next((name for name, _, _ in kernels if counts[name] == repeats), None)
    if repeats < _MIN_REPEATS or anchor is None:
        return None
    starts = [start for name, start, _ in kernels if name == anchor]
    periods = [later - start for start, later in itertools.pairwise(starts)]
    middle = statistics.median(periods)
    spread = statistics.median(abs(period - middle) for period in periods)
    if middle <= 0 or spread > _REGULAR * middle:
        return None
    source = f"{repeats} repeats of kernel {anchor[:60]!r}"
    return Steps(list(zip(starts, periods, strict=False)), source)
