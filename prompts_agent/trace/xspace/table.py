"""From events of lines to the op columns of a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import Events
from prompts_agent.trace.xspace.clock import Clock
from prompts_agent.trace.xspace.columns import event_blocks
from prompts_agent.trace.xspace.file import LineIndex, XSpaceFile

__all__ = [
    "IdTable",
    "joined",
    "joined_places",
    "line_events",
    "merged",
    "no_events",
    "sorted_events",
]

Int64s = NDArray[np.int64]

_DENSE_LIMIT = 1 << 20


class IdTable:
    """Metadata ids → places in an op table. Ids that the plane does not name map to -1."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._order = np.argsort(np.array(ids, np.int64), kind="stable").astype(np.int32)
        self._sorted = np.array(ids, np.int64)[self._order]
        self._dense: NDArray[np.int32] | None = None
        if ids and min(ids) >= 0 and max(ids) < _DENSE_LIMIT:
            self._dense = np.full(max(ids) + 1, -1, np.int32)
            self._dense[np.array(ids, np.int64)] = np.arange(len(ids), dtype=np.int32)

    def places(self, ids: Int64s) -> NDArray[np.int32]:
        """The place of each id."""
        if not self._sorted.shape[0]:
            return np.full(ids.shape[0], -1, np.int32)
        if self._dense is not None:
            known = (ids >= 0) & (ids < self._dense.shape[0])
            return np.where(known, self._dense[np.where(known, ids, 0)], np.int32(-1))
        near = np.minimum(np.searchsorted(self._sorted, ids), self._sorted.shape[0] - 1)
        return np.where(self._sorted[near] == ids, self._order[near], np.int32(-1))


def line_events(file: XSpaceFile, line: LineIndex, table: IdTable, clock: Clock) -> Events:
    """Events of a line as columns; those without a name are left out."""
    ops: list[NDArray[np.int32]] = []
    starts: list[Int64s] = []
    durations: list[Int64s] = []
    base = clock.start_ps(line)
    for block in event_blocks(file, line):
        op = table.places(block.metadata_id)
        start, duration = block.offset_ps + base, block.duration_ps
        if (op < 0).any():
            named = op >= 0
            op, start, duration = op[named], start[named], duration[named]
        ops.append(op)
        starts.append(start)
        durations.append(duration)
    return sorted_events(joined_places(ops), joined(starts), joined(durations))


def joined(parts: list[Int64s]) -> Int64s:
    """One array of the parts, which are let go of."""
    whole = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    parts.clear()
    return whole


def joined_places(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The same for places in a table."""
    whole = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    parts.clear()
    return whole


def no_events() -> Events:
    """Columns without rows."""
    return Events(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))


def sorted_events(op: NDArray[np.int32], start: Int64s, duration: Int64s) -> Events:
    """Columns by start; of equal starts the longer first, so that spans precede their bodies."""
    if start.shape[0] > 1:
        step = np.diff(start)
        tie = (step == 0) & (np.diff(duration) > 0)
        if (step < 0).any() or tie.any():
            order = np.lexsort((-duration, start))
            op, start, duration = op[order], start[order], duration[order]
    return Events(op, start, duration)


def merged(parts: Iterable[Events]) -> Events:
    """All events of several columns, in order."""
    kept = [part for part in parts if len(part)]
    if not kept:
        return no_events()
    return sorted_events(
        np.concatenate([part.op for part in kept]),
        np.concatenate([part.start_ps for part in kept]),
        np.concatenate([part.duration_ps for part in kept]),
    )
