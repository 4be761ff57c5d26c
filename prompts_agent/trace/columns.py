"""Builds the columns of a capture from events that come one at a time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from prompts_agent.trace.capture import Capture, Device, DeviceEvents, Events, Op

__all__ = ["Columns", "LoadedCapture", "OpTable"]


class OpTable:
    """Ops by key; `index` adds an op once and gives its place."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self._index: dict[Hashable, int] = {}

    def find(self, key: Hashable) -> int | None:
        """The place of `key`, or None where it is new."""
        return self._index.get(key)

    def add(self, key: Hashable, op: Op) -> int:
        """Adds an op under a new key."""
        self._index[key] = len(self.ops)
        self.ops.append(op)
        return self._index[key]


class Columns:
    """Rows (op, start, duration) on their way into `Events`."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int]] = []

    def append(self, op: int, start_ps: int, duration_ps: int) -> None:
        """Adds an event."""
        self._rows.append((op, start_ps, duration_ps))

    def __len__(self) -> int:
        return len(self._rows)

    def events(self) -> Events:
        """The columns, sorted by start; of equal starts the longer first, so that parents lead."""
        self._rows.sort(key=lambda row: (row[1], -row[2]))
        table = np.array(self._rows, dtype=np.int64).reshape(-1, 3)
        return Events(table[:, 0].astype(np.int32), table[:, 1].copy(), table[:, 2].copy())


class LoadedCapture(Capture):
    """A capture whose events are already in memory: JSON and SQLite cannot be read by device."""

    decoded: Sequence[tuple[Device, DeviceEvents]] = ()

    def events(self, device: Device) -> DeviceEvents:
        """The events of one of `devices`."""
        for known, events in self.decoded:
            if known is device or known == device:
                return events
        raise KeyError(device)
