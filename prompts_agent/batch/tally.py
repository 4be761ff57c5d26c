"""Tally: how far a batch is, how fast, and what failed for which reason."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable

from prompts_agent.batch.row import DONE, Row

__all__ = ["Tally", "span_text"]

_RECENT = 200
"""Rows that the rate is taken over: a batch begins slowly, and its traces differ."""


class Tally:
    """Counts of one run. `clock` gives seconds."""

    def __init__(
        self, total: int, before: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total = total
        self.before = before
        """Rows that earlier runs had done."""
        self.ended = 0
        self.statuses: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self._clock = clock
        self._started_s = clock()
        self._recent: deque[float] = deque([self._started_s], maxlen=_RECENT + 1)

    def add(self, row: Row) -> None:
        """A row has ended in this run."""
        self.ended += 1
        self._recent.append(self._clock())
        self.count(row)

    def count(self, row: Row) -> None:
        """A row, of this run or of an earlier one, for the sums."""
        self.statuses[row.status] += 1
        if row.status not in DONE:
            self.reasons[row.reason or row.status] += 1

    @property
    def per_s(self) -> float | None:
        """Rows a second, lately; None before the first."""
        span_s = self._recent[-1] - self._recent[0]
        return (len(self._recent) - 1) / span_s if span_s > 0 else None

    @property
    def left_s(self) -> float | None:
        """Time left at that rate; None where it is not known."""
        waiting = self.total - self.before - self.ended
        rate = self.per_s
        return waiting / rate if rate else None

    def line(self) -> str:
        """`312/10000, 4.1 a second, 39 min left, 3 failed: 2 DamagedTraceError, 1 time limit`."""
        parts = [f"{self.before + self.ended}/{self.total}"]
        if self.per_s is not None:
            parts.append(f"{self.per_s:.2g} a second")
        if self.left_s is not None and self.left_s > 0:
            parts.append(f"{span_text(self.left_s)} left")
        failed = self.failures()
        return ", ".join([*parts, failed] if failed else parts)

    def failures(self) -> str:
        """`3 failed: 2 DamagedTraceError, 1 time limit`; empty where none did."""
        if not self.reasons:
            return ""
        each = ", ".join(f"{count} {reason}" for reason, count in self.reasons.most_common())
        return f"{self.reasons.total()} failed: {each}"

    def summary(self) -> str:
        """What became of all rows, in a sentence."""
        done, silent = self.statuses["done"], self.statuses["cannot_tell"]
        failed = self.failures() or "none failed"
        return f"{done} diagnosed, {silent} cannot tell, {failed}"


def span_text(seconds: float) -> str:
    """`40 s`, `39 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
