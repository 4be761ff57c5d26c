"""TPU planes: an op line, a module line, perhaps asynchronous spans and marked steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from prompts_agent.trace.capture import DeviceEvents, Events, ModuleRun, Op
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.xspace.clock import Clock
from prompts_agent.trace.xspace.file import PlaneIndex, XSpaceFile
from prompts_agent.trace.xspace.ops import TextPrograms, program_key, tpu_op
from prompts_agent.trace.xspace.stats import StatNames
from prompts_agent.trace.xspace.table import IdTable, line_events, no_events

__all__ = ["split_module_name", "tpu_events"]

OP_LINE, MODULE_LINE, ASYNC_LINE, STEP_LINE = "XLA Ops", "XLA Modules", "Async XLA Ops", "Steps"
_MODULE_NAME = re.compile(r"^(.*)\((\d+)\)$")


def split_module_name(name: str) -> tuple[str, int | None]:
    """`jit_f(1219)` is ("jit_f", 1219)."""
    found = _MODULE_NAME.match(name)
    return (found[1], program_key(int(found[2]))) if found else (name, None)


def tpu_events(
    file: XSpaceFile, plane: PlaneIndex, programs: Mapping[int, HloProgram], clock: Clock
) -> DeviceEvents:
    """Decodes one TPU plane."""
    head = file.plane_head(plane)
    ids = IdTable(list(head.event_metadata))
    names = [metadata.name for metadata in head.event_metadata.values()]

    def events(line_name: str) -> Events:
        line = plane.line(line_name)
        return no_events() if line is None else line_events(file, line, ids, clock)

    ops, windows, modules, steps = map(events, (OP_LINE, ASYNC_LINE, MODULE_LINE, STEP_LINE))
    return DeviceEvents(
        table=_table(head, programs, [ops, windows]),
        ops=ops,
        modules=_runs(modules, names),
        windows=windows if len(windows) else None,
        step_markers=list(zip(steps.start_ps.tolist(), steps.duration_ps.tolist(), strict=True)),
    )


def _runs(events: Events, names: list[str]) -> list[ModuleRun]:
    rows = zip(
        events.op.tolist(), events.start_ps.tolist(), events.duration_ps.tolist(), strict=True
    )
    split = [split_module_name(name) for name in names]
    return [ModuleRun(split[op][0], split[op][1], start, duration) for op, start, duration in rows]


def _table(head: Any, programs: Mapping[int, HloProgram], used_by: list[Events]) -> list[Op]:
    """An op for each event name; names that no op event uses stay bare."""
    stat_names = StatNames(head)
    used = np.zeros(len(head.event_metadata), np.bool_)
    for events in used_by:
        used[events.op] = True
    found = [
        (metadata, stat_names.values(metadata.stats) if used[k] else None)
        for k, metadata in enumerate(head.event_metadata.values())
    ]
    texts = TextPrograms(programs)
    for metadata, stats in found:
        if stats is not None:
            texts.add(program_key(stats.get("program_id")), metadata.name)
    built: dict[int | None, HloProgram | None] = {}
    table = []
    for metadata, stats in found:
        if stats is None:
            table.append(Op(name=metadata.name, opcode="unused"))
            continue
        key = program_key(stats.get("program_id"))
        if key not in built:
            built[key] = texts.get(key)
        table.append(tpu_op(metadata.name, metadata.display_name, stats, built[key]))
    return table
