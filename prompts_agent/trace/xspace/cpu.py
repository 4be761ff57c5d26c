"""CPU devices (jax's virtual ones too): their ops lie on host threads, told apart by stats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import DeviceEvents, ModuleRun, Op
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.xspace.clock import Clock
from prompts_agent.trace.xspace.columns import event_blocks
from prompts_agent.trace.xspace.file import PlaneIndex, XSpaceFile
from prompts_agent.trace.xspace.ops import kernel_op, program_key
from prompts_agent.trace.xspace.stats import ABSENT, StatColumns, StatNames, stat_columns
from prompts_agent.trace.xspace.table import joined, sorted_events

__all__ = ["CpuDevices", "cpu_devices"]

_STATS = ("hlo_op", "hlo_module", "program_id", "run_id", "device_ordinal")


@dataclass(frozen=True, slots=True)
class CpuDevices:
    """All op events of a host, with the device that each ran on."""

    table: list[Op]
    modules: dict[int, str]
    op: NDArray[np.int32]
    start_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    run_id: NDArray[np.int64]
    device: NDArray[np.int64]

    @property
    def ordinals(self) -> list[int]:
        """The devices that ran anything."""
        return [int(ordinal) for ordinal in np.unique(self.device)]

    def events(self, ordinal: int) -> DeviceEvents:
        """Events of one device; its runs are told apart by their run id."""
        mine = self.device == ordinal
        ops = sorted_events(self.op[mine], self.start_ps[mine], self.duration_ps[mine])
        return DeviceEvents(table=self.table, ops=ops, modules=self._runs(mine))

    def _runs(self, mine: NDArray[np.bool_]) -> list[ModuleRun]:
        program = np.array([op.program_id or 0 for op in self.table], np.uint64)[self.op[mine]]
        keys = np.stack([program.astype(np.int64), self.run_id[mine]], axis=1)
        unique, inverse = np.unique(keys, axis=0, return_inverse=True)
        start, end = self.start_ps[mine], self.start_ps[mine] + self.duration_ps[mine]
        runs = []
        for k, (program_id, _) in enumerate(unique.tolist()):
            rows = inverse.reshape(-1) == k
            first = int(start[rows].min())
            key = program_id % 2**64
            name = self.modules.get(key, str(key))
            runs.append(ModuleRun(name, key, first, int(end[rows].max()) - first))
        return sorted(runs, key=lambda run: run.start_ps)


def cpu_devices(
    file: XSpaceFile,
    plane: PlaneIndex,
    head: Any,
    programs: Mapping[int, HloProgram],
    clock: Clock,
) -> CpuDevices | None:
    """Ops on the host's threads, None where there are none. `head` is the plane's own."""
    names = StatNames(head)
    wanted = {name: found for name in _STATS if (found := names.find(name)) is not None}
    instructions = {name for program in programs.values() for name in program.instructions}
    ids = sorted(k for k, v in head.event_metadata.items() if v.name in instructions)
    if "hlo_op" not in wanted or not ids:
        return None
    collected = _Collector(names, programs)
    candidates = np.array(ids, np.int64)
    for line in plane.lines:
        base = clock.start_ps(line)
        for block in event_blocks(file, line, wanted=candidates):
            stats = stat_columns(block, names, wanted, collected.inline)
            collected.add(stats, block.offset_ps + base, block.duration_ps)
    return collected.result()


class _Collector:
    def __init__(self, names: StatNames, programs: Mapping[int, HloProgram]) -> None:
        self.inline: dict[str, int] = {}
        self._names = names
        self._programs = programs
        self._table: list[Op] = []
        self._modules: dict[int, str] = {}
        self._places: dict[tuple[int, int], int] = {}
        self._parts: list[list[NDArray[np.int64]]] = [[] for _ in range(5)]

    def add(
        self, stats: StatColumns, start: NDArray[np.int64], duration: NDArray[np.int64]
    ) -> None:
        missing = np.full(start.shape[0], ABSENT, np.int64)
        column = {name: stats.columns.get(name, missing) for name in _STATS}
        kept = column["hlo_op"] != ABSENT
        keys = np.stack([column["hlo_op"][kept], column["program_id"][kept]], axis=1)
        if not keys.shape[0]:
            return
        unique, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        modules = column["hlo_module"][kept][first]
        places = [
            self._place((hlo_op, program), stats, int(modules[k]))
            for k, (hlo_op, program) in enumerate(unique.tolist())
        ]
        op = np.array(places, np.int64)[inverse.reshape(-1)]
        device = np.where(column["device_ordinal"] == ABSENT, 0, column["device_ordinal"])[kept]
        for part, values in zip(
            self._parts,
            (op, start[kept], duration[kept], column["run_id"][kept], device),
            strict=True,
        ):
            part.append(values)

    def _place(self, key: tuple[int, int], stats: StatColumns, module: int) -> int:
        if key not in self._places:
            name = stats.text(key[0]) or "unknown"
            program_id = None if key[1] == ABSENT else program_key(key[1])
            if program_id is not None:
                self._modules[program_id] = stats.text(module) or str(program_id)
            program = self._programs.get(program_id) if program_id is not None else None
            self._places[key] = len(self._table)
            self._table.append(kernel_op(name, name, None, program_id, program))
        return self._places[key]

    def result(self) -> CpuDevices | None:
        if not self._table:
            return None
        op, start, duration, run, device = (joined(part) for part in self._parts)
        return CpuDevices(
            self._table, self._modules, op.astype(np.int32), start, duration, run, device
        )
