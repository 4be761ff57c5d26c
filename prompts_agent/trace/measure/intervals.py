"""Sets of intervals as numpy columns: union, length, what one set covers of another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Intervals", "empty", "joint", "union"]

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Intervals:
    """Disjoint intervals [start, end) in order."""

    start: Int64s
    end: Int64s

    @property
    def length(self) -> int:
        """Sum of all lengths."""
        return int((self.end - self.start).sum())

    def covered(self, until: Int64s) -> Int64s:
        """Length of the set before each moment of `until`.

        Of [0,4) and [6,8): 0 before 0, 3 before 3, 4 before 5, 5 before 7, 6 before 9.
        """
        if not self.start.shape[0]:
            return np.zeros(until.shape[0], np.int64)
        before = np.concatenate(([0], np.cumsum(self.end - self.start)))
        index = np.searchsorted(self.start, until, side="right") - 1
        inside = np.minimum(until, self.end[index]) - self.start[index]
        return np.where(index < 0, 0, before[index] + inside)

    def covered_between(self, start: Int64s, end: Int64s) -> Int64s:
        """Length of the set within each [start, end)."""
        return self.covered(end) - self.covered(start)

    def overlap(self, other: Intervals) -> int:
        """Length of what both hold."""
        return int(other.covered_between(self.start, self.end).sum())


def empty() -> Intervals:
    """The empty set."""
    return Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))


def union(start: Int64s, end: Int64s) -> Intervals:
    """The set that the intervals cover together; they may overlap and come in any order."""
    held = end > start
    if not held.all():
        start, end = start[held], end[held]
    if not start.shape[0]:
        return empty()
    if (np.diff(start) < 0).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    opens = np.flatnonzero(np.concatenate(([True], start[1:] > reach[:-1])))
    closes = np.concatenate((opens[1:] - 1, [start.shape[0] - 1]))
    return Intervals(start[opens], reach[closes])


def joint(one: Intervals, other: Intervals) -> Intervals:
    """The set that either holds."""
    if not one.start.shape[0]:
        return other
    if not other.start.shape[0]:
        return one
    return union(np.concatenate((one.start, other.start)), np.concatenate((one.end, other.end)))
