"""GPU planes: one line per stream; what a kernel belongs to is in its own stats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import DeviceEvents, Events, Op
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.xspace.clock import Clock
from prompts_agent.trace.xspace.columns import EventBlock, event_blocks
from prompts_agent.trace.xspace.file import LineIndex, PlaneIndex, XSpaceFile
from prompts_agent.trace.xspace.ops import kernel_op, program_key
from prompts_agent.trace.xspace.runs import derive_runs
from prompts_agent.trace.xspace.stats import ABSENT, StatColumns, StatNames, stat_columns
from prompts_agent.trace.xspace.table import joined, joined_places, merged, sorted_events

__all__ = ["gpu_events", "stream_lines"]

_STATS = ("hlo_op", "hlo_module", "program_id", "name", "annotation")
# Lines that a viewer derives from the streams; their events repeat those of the streams.
_DERIVED = {
    "TensorFlow Name Scope", "TensorFlow Ops", "XLA Modules", "XLA Ops", "Steps", "Source code",
    "Framework Name Scope", "Framework Ops", "XLA TraceMe", "Launch Stats",
}  # fmt: skip

Key = tuple[int, int, int, int]


def stream_lines(plane: PlaneIndex) -> list[LineIndex]:
    """The lines that hold what the GPU did."""
    streams = [line for line in plane.lines if line.name.startswith("Stream")]
    return streams or [line for line in plane.lines if line.name not in _DERIVED]


class KernelTable:
    """Ops of a plane by (event name, HLO op, program, module), across its blocks."""

    def __init__(self, head: Any, programs: Mapping[int, HloProgram]) -> None:
        self.ops: list[Op] = []
        self.names = StatNames(head)
        self.modules: dict[int, str] = {}
        self._head = head
        self._programs = programs
        self._by_name = {program.name: key for key, program in programs.items()}
        self._places: dict[Key, int] = {}
        wanted = {name: self.names.find(name) for name in _STATS}
        self.wanted = {name: found for name, found in wanted.items() if found is not None}
        self.inline: dict[str, int] = {}

    def places(self, block: EventBlock) -> NDArray[np.int32]:
        """The op of each event of a block."""
        stats = stat_columns(block, self.names, self.wanted, self.inline)
        absent = np.full(len(block), ABSENT, np.int64)
        keys = np.stack(
            [
                block.metadata_id,
                *(stats.columns.get(name, absent) for name in ("hlo_op", "program_id")),
                stats.columns.get("hlo_module", absent),
            ],
            axis=1,
        )
        unique, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        found = [
            self._place((k[0], k[1], k[2], k[3]), stats, row)
            for k, row in zip(unique.tolist(), first.tolist(), strict=True)
        ]
        return np.array(found, np.int32)[inverse.reshape(-1)]

    def _place(self, key: Key, stats: StatColumns, row: int) -> int:
        if key not in self._places:
            self._places[key] = len(self.ops)
            self.ops.append(self._op(key, stats, row))
        return self._places[key]

    def _op(self, key: Key, stats: StatColumns, row: int) -> Op:
        metadata_id, hlo_op, program, module = key
        kernel = self._head.event_metadata[metadata_id].name or "unknown"
        module_name = stats.text(module)
        program_id = None if program == ABSENT else program_key(program)
        if program_id is None and module_name is not None:
            program_id = self._by_name.get(module_name)
        if program_id is not None:
            known = self._programs.get(program_id)
            self.modules[program_id] = module_name or (known.name if known else str(program_id))
        return kernel_op(
            kernel,
            stats.text(hlo_op),
            self._framework_name(stats, row),
            program_id,
            self._programs.get(program_id) if program_id is not None else None,
        )

    def _framework_name(self, stats: StatColumns, row: int) -> str | None:
        for name in ("name", "annotation"):
            column = stats.columns.get(name)
            if column is not None and column[row] != ABSENT:
                return stats.text(int(column[row]))
        return None


def gpu_events(
    file: XSpaceFile, plane: PlaneIndex, programs: Mapping[int, HloProgram], clock: Clock
) -> DeviceEvents:
    """Decodes one GPU plane, all streams together."""
    table = KernelTable(file.plane_head(plane), programs)
    parts = [_line(file, line, table, clock) for line in stream_lines(plane)]
    ops = merged(parts)
    return DeviceEvents(
        table=table.ops, ops=ops, modules=derive_runs(table.ops, ops, table.modules)
    )


def _line(file: XSpaceFile, line: LineIndex, table: KernelTable, clock: Clock) -> Events:
    ops, starts, durations = [], [], []
    base = clock.start_ps(line)
    for block in event_blocks(file, line):
        ops.append(table.places(block))
        starts.append(block.offset_ps + base)
        durations.append(block.duration_ps)
    return sorted_events(joined_places(ops), joined(starts), joined(durations))
