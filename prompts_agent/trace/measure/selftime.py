"""Self time: an event's duration without the events that lie inside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import Events

__all__ = ["self_times"]

Int64s = NDArray[np.int64]


def _nested(events: Events) -> bool:
    end = events.start_ps + events.duration_ps
    return bool((events.start_ps[1:] < end[:-1]).any())


def _depths(start: Int64s, end: Int64s) -> Int64s:
    """How many events are open when each begins: those before it, less those that have ended."""
    ended = np.searchsorted(np.sort(end), start, side="right")
    return np.arange(start.shape[0], dtype=np.int64) - ended


def self_times(events: Events) -> Int64s:
    """Self time of each event of one line, picoseconds; events are nested or apart.

    A `while` of 10 with bodies of 4 and 3 inside has 3 of its own. Level by level: children are
    the events one deeper, and their parent is the last event of its own level before them.
    """
    own = events.duration_ps.copy()
    if len(events) < 2 or not _nested(events):
        return own
    rows = np.flatnonzero(events.duration_ps > 0)  # events without length have no self time
    start, duration = events.start_ps[rows], events.duration_ps[rows]
    depth = _depths(start, start + duration)
    inside = np.zeros(rows.shape[0], np.int64)
    for level in range(1, int(depth.max(initial=0)) + 1):
        children = np.flatnonzero(depth == level)
        parents = np.flatnonzero(depth == level - 1)
        parent = parents[np.searchsorted(parents, children) - 1]
        inside += np.bincount(parent, weights=duration[children], minlength=rows.shape[0]).astype(
            np.int64
        )
    own[rows] = np.maximum(duration - inside, 0)
    return own
