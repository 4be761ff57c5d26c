"""Where a step's time goes: compute, exposed collectives, host transfers, input, idle.

Each moment counts once, for the first of these that is under way. On a TPU's op line, where ops
follow one another, that is the sum of durations; on a GPU it takes the streams together, so that
only communication without a kernel beside it is exposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import Events
from prompts_agent.trace.measure.classify import Activity
from prompts_agent.trace.measure.intervals import Intervals, empty, joint, union
from prompts_agent.trace.measure.steps import DeviceSteps
from prompts_agent.trace.profile import Breakdown
from prompts_agent.units import seconds_from_ps

__all__ = ["Waits", "divide_time"]

_ORDER = (
    (Activity.COMPUTE, Activity.ISSUE),
    (Activity.COLLECTIVE,),
    (Activity.HOST_TRANSFER,),
    (Activity.INPUT,),
)


@dataclass(frozen=True, slots=True)
class Waits:
    """Over the whole capture, in picoseconds."""

    collective_ps: int = 0
    host_transfer_ps: int = 0
    input_ps: int = 0


def divide_time(
    ops: Events, kinds: NDArray[np.int8], steps: DeviceSteps | None
) -> tuple[Breakdown, Waits]:
    """The breakdown of a step, and the waits of the whole capture.

    Parts are the mean shares of the typical steps, times the step's period: so they add up to it.
    Without steps, of the whole time from the first event to the last.
    """
    covered = _covered(ops, kinds)
    lengths = [found.length for found in covered]
    waits = Waits(*(after - before for before, after in pairwise(lengths)))
    start, until, step_ps = _bounds(ops, steps)
    if not start.shape[0] or step_ps <= 0:
        return Breakdown(), waits
    whole = int((until - start).sum())
    within = [int(found.covered_between(start, until).sum()) for found in covered]
    parts = [(after - before) / whole for before, after in pairwise([0, *within])]
    seconds = [seconds_from_ps(part * step_ps) for part in parts]
    idle = seconds_from_ps(step_ps) - sum(seconds)
    return (
        Breakdown(
            compute_s=seconds[0],
            exposed_collective_s=seconds[1],
            host_transfer_s=seconds[2],
            input_s=seconds[3],
            idle_s=max(idle, 0.0),
        ),
        waits,
    )


def _covered(ops: Events, kinds: NDArray[np.int8]) -> list[Intervals]:
    """Per activity, in order, the time that it or an earlier one covers."""
    of_event = kinds[ops.op]
    end = ops.start_ps + ops.duration_ps
    covered, found = empty(), []
    for group in _ORDER:
        rows = of_event == group[0]
        for other in group[1:]:
            rows |= of_event == other
        covered = joint(covered, union(ops.start_ps[rows], end[rows]))
        found.append(covered)
    return found


def _bounds(
    ops: Events, steps: DeviceSteps | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
    if steps is not None:
        typical = steps.typical()
        return steps.start[typical], steps.until[typical], steps.step_ps
    if not len(ops):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0
    first = int(ops.start_ps[0])
    last = int((ops.start_ps + ops.duration_ps).max())
    return np.array([first]), np.array([last]), float(last - first)
