"""The host plane: compiles, transfers, input, marked steps, allocators. All else is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import HostEvent
from prompts_agent.trace.hostevents import host_event_kind
from prompts_agent.trace.xspace.clock import Clock
from prompts_agent.trace.xspace.columns import EventBlock, event_blocks
from prompts_agent.trace.xspace.file import PlaneIndex, XSpaceFile
from prompts_agent.trace.xspace.stats import ABSENT, StatNames, stat_columns

__all__ = ["AllocatorUse", "HostReading", "read_host"]

_MAX_EVENTS = 200_000
_ALLOCATION = ("MemoryAllocation", "MemoryDeallocation")
_ALLOCATOR_STATS = (
    "allocator_name", "index_on_host", "bytes_reserved", "bytes_allocated", "bytes_available",
    "peak_bytes_in_use",
)  # fmt: skip
_STEP_NAME = re.compile(
    r"(train|step|eval|decode|prefill|TraceContext|SessionRun)\b", re.IGNORECASE
)
_COMPILER_PASS = re.compile(r"[a-z0-9_]+(?:-[a-z0-9_]+)+|infeed_\w+")
_HOST_ALLOCATOR = re.compile(r"host|cpu", re.IGNORECASE)


@dataclass(slots=True)
class AllocatorUse:
    """Most that one device's allocator held; `reserved` is what programs keep for temporaries."""

    name: str
    peak_in_use_bytes: int = 0
    peak_with_reserved_bytes: int = 0
    capacity_bytes: int = 0


@dataclass(slots=True)
class HostReading:
    """What the host plane tells."""

    events: list[HostEvent] = field(default_factory=list)
    allocators: dict[str, AllocatorUse] = field(default_factory=dict)
    dropped: int = 0
    """Events beyond the number that is kept."""


def read_host(file: XSpaceFile, plane: PlaneIndex, head: Any, clock: Clock) -> HostReading:
    """Reads the host plane in blocks; memory does not grow with it."""
    names = StatNames(head)
    kinds = _kinds(head)
    allocations = {k for k, v in head.event_metadata.items() if v.name in _ALLOCATION}
    wanted = np.array(sorted({*kinds, *allocations}), np.int64)
    reading = HostReading()
    if not wanted.shape[0]:
        return reading
    reader = _HostReader(head, names, kinds, sorted(allocations), reading)
    for line in plane.lines:
        base = clock.start_ps(line)
        for block in event_blocks(file, line, wanted=wanted):
            reader.take(block, base)
    reading.events.sort(key=lambda event: (event.start_ps, -event.duration_ps))
    return reading


def _kinds(head: Any) -> dict[int, str]:
    found = {k: host_event_kind(v.name) for k, v in head.event_metadata.items()}
    steps = {k: "step" for k, v in head.event_metadata.items() if _STEP_NAME.match(v.name)}
    # Compiler passes such as "infeed-decomposer" are named like what they work on.
    passes = {k for k, v in head.event_metadata.items() if _COMPILER_PASS.fullmatch(v.name)}
    named = {k: kind for k, kind in found.items() if kind is not None and k not in passes}
    return {**steps, **named}


class _HostReader:
    def __init__(
        self,
        head: Any,
        names: StatNames,
        kinds: Mapping[int, str],
        allocations: list[int],
        reading: HostReading,
    ) -> None:
        self._head, self._names, self._kinds, self._reading = head, names, kinds, reading
        self._allocations = np.array(allocations, np.int64)
        self._step_ids = np.array([k for k, kind in kinds.items() if kind == "step"], np.int64)
        wanted = {name: names.find(name) for name in _ALLOCATOR_STATS}
        self._wanted = {name: found for name, found in wanted.items() if found is not None}
        self._inline: dict[str, int] = {}

    def take(self, block: EventBlock, base: int) -> None:
        is_allocation = np.isin(block.metadata_id, self._allocations)
        if is_allocation.any():
            self._allocate(block.select(is_allocation))
        block = block.select(~is_allocation)
        rows = zip(
            block.metadata_id.tolist(),
            block.offset_ps.tolist(),
            block.duration_ps.tolist(),
            self._steps(block),
            strict=True,
        )
        for metadata_id, offset, duration, step in rows:
            kind = self._kinds.get(metadata_id)
            if kind is None or (kind == "step" and step is None):
                continue
            if len(self._reading.events) >= _MAX_EVENTS:
                self._reading.dropped += 1
                continue
            name = self._head.event_metadata[metadata_id].name
            self._reading.events.append(HostEvent(kind, name, offset + base, duration, step))

    def _steps(self, block: EventBlock) -> list[int | None]:
        """The step that each event marks."""
        steps: list[int | None] = [None] * len(block)
        marked = np.isin(block.metadata_id, self._step_ids)
        step_num = self._names.find("step_num")
        if step_num is None or not marked.any():
            return steps
        found = stat_columns(block.select(marked), self._names, {"step_num": step_num})
        for row, value in zip(np.flatnonzero(marked), found.columns["step_num"], strict=True):
            steps[row] = None if value == ABSENT else int(value)
        return steps

    def _allocate(self, block: EventBlock) -> None:
        stats = stat_columns(block, self._names, self._wanted, self._inline)
        absent = np.full(len(block), ABSENT, np.int64)
        column = {name: stats.columns.get(name, absent) for name in _ALLOCATOR_STATS}
        number = {k: np.where(v == ABSENT, 0, v) for k, v in column.items()}
        held = number["bytes_allocated"] + number["bytes_reserved"]
        for name_id, index, mine in _owners(column["allocator_name"], column["index_on_host"]):
            name = stats.text(name_id) or f"device {0 if index == ABSENT else index}"
            if _HOST_ALLOCATOR.search(name):
                continue
            use = self._reading.allocators.setdefault(name, AllocatorUse(name))
            use.peak_in_use_bytes = max(
                use.peak_in_use_bytes, int(number["peak_bytes_in_use"][mine].max())
            )
            use.peak_with_reserved_bytes = max(use.peak_with_reserved_bytes, int(held[mine].max()))
            whole = held[mine] + number["bytes_available"][mine]
            use.capacity_bytes = max(use.capacity_bytes, int(whole.max()))


def _owners(
    name: NDArray[np.int64], index: NDArray[np.int64]
) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
    """Each pair that occurs, with its rows. A handful in thousands of rows: no sort is needed."""
    left = np.ones(name.shape[0], np.bool_)
    while left.any():
        first = int(left.argmax())
        mine = (name == name[first]) & (index == index[first])
        yield int(name[first]), int(index[first]), mine
        left &= ~mine
