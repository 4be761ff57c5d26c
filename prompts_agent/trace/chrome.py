"""jax's `*.trace.json.gz`: Chrome JSON that the profiler converts from XSpace.

A process is a plane, a thread a line. It holds the HLO text of every op but no device kind, no
peaks and no programs, and stops at a million events: the second-best form of a capture.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from prompts_agent.errors import NotDiagnosableError
from prompts_agent.trace.capture import Device, DeviceEvents, HostEvent, ModuleRun
from prompts_agent.trace.chrome_ops import long_name, stream_op, xla_op
from prompts_agent.trace.columns import Columns, LoadedCapture, OpTable
from prompts_agent.trace.discover import InputFile
from prompts_agent.trace.events import JsonTrace, Span, as_int, picoseconds, read_json_trace, spans
from prompts_agent.trace.hostevents import host_event_kind
from prompts_agent.trace.kernels import short_name
from prompts_agent.trace.profile import TraceFile
from prompts_agent.trace.xspace.ops import TextPrograms

__all__ = ["read_chrome"]

_DEVICE = re.compile(r"^/device:(TPU|GPU):(\d{1,6})(?:$|\s*\()")
_MODULE = re.compile(r"^(.*?)(?:\((\d{1,20})\))?$", re.DOTALL)
_OPS, _ASYNC, _MODULES, _STEPS = "XLA Ops", "Async XLA Ops", "XLA Modules", "Steps"


@dataclass(slots=True)
class _Host:
    """One file, its spans sorted into planes and lines."""

    file: InputFile
    caveats: list[str]
    lines: dict[str, dict[str, list[Span]]] = field(default_factory=dict)
    """Process name → thread name → spans."""
    base_us: float = 0.0


def read_chrome(files: Sequence[InputFile], file: TraceFile) -> LoadedCapture:
    """Reads the hosts of one job. Raises `NotDiagnosableError` where no device has events."""
    caveats: list[str] = []
    decoded: list[tuple[Device, DeviceEvents]] = []
    host_events: list[HostEvent] = []
    ranks: set[int] = set()
    for item in files:
        host = _read_host(item)
        caveats += host.caveats
        decoded += _devices(host)
        host_events = host_events or _host_events(host)
    for _, events in decoded:
        ranks.update(r for op in events.table for group in op.groups or () for r in group)
    capture = LoadedCapture(
        file=file.model_copy(update={"caveats": (*file.caveats, *dict.fromkeys(caveats))}),
        devices=[device for device, _ in decoded],
        host_events=host_events,
        devices_in_job=max(max(ranks) + 1, len(decoded)) if ranks else None,
        missing=[
            "device kind, peak FLOP/s and memory (jax's JSON leaves them out; the *.xplane.pb of "
            "the same capture holds them)",
            "programs (HLO protos): parameters, their shardings and the buffer assignment",
        ],
    )
    capture.decoded = decoded
    capture.missing += _unnamed_kernels(decoded)
    if not any(device.active for device in capture.devices):
        raise _no_device_events(files)
    return capture


def _unnamed_kernels(decoded: Sequence[tuple[Device, DeviceEvents]]) -> list[str]:
    """A note where most kernels of the GPUs do not say which HLO op they belong to."""
    kernels = [
        op
        for device, events in decoded
        if device.platform == "gpu"
        for op in events.table
        if op.opcode == "kernel"
    ]
    unnamed = sum(op.program_id is None and op.name == short_name(op.text or "") for op in kernels)
    if unnamed <= len(kernels) / 2:
        return []
    return [
        f"HLO ops behind {unnamed:,} of {len(kernels):,} distinct kernels (run from a command "
        "buffer, which keeps kernel names only)"
    ]


def _no_device_events(files: Sequence[InputFile]) -> NotDiagnosableError:
    return NotDiagnosableError(
        f"{', '.join(item.path.name for item in files[:3])}: no device events, only the host's",
        rule="a capture that outlives the device's trace buffer, or whose work finished before it "
        "began, holds none",
        cure="Capture 2 to 5 steps, and call jax.block_until_ready inside the traced region. On "
        "GPUs see that CUPTI may be used (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).",
    )


def _read_host(item: InputFile) -> _Host:
    trace = read_json_trace(item.path)
    found, broken = spans(trace.events)
    host = _Host(item, list(trace.caveats))
    if broken:
        host.caveats.append(f"{item.path.name}: {broken:,} events with impossible times dropped")
    processes, threads = _names(trace)
    for span in found:
        process = processes.get(span.pid)
        if process is None:
            continue
        thread = threads.get((span.pid, span.tid), str(span.tid))
        host.lines.setdefault(process, defaultdict(list))[thread].append(span)
    for process in processes.values():
        host.lines.setdefault(process, {})
    host.base_us = min((span.start_us for span in found), default=0.0)
    return host


def _names(trace: JsonTrace) -> tuple[dict[object, str], dict[tuple[object, object], str]]:
    processes: dict[object, str] = {}
    threads: dict[tuple[object, object], str] = {}
    for event in trace.events:
        args = event.get("args")
        if event.get("ph") != "M" or not isinstance(args, dict):
            continue
        pid, tid, name = event.get("pid"), event.get("tid"), args.get("name")
        if not isinstance(name, str) or not isinstance(pid, int | str):
            continue
        if event.get("name") == "process_name":
            processes[pid] = name
        elif event.get("name") == "thread_name" and isinstance(tid, int | str):
            threads[pid, tid] = name
    return processes, threads


def _devices(host: _Host) -> list[tuple[Device, DeviceEvents]]:
    decoded = []
    for process, lines in sorted(host.lines.items(), key=lambda item: _natural(item[0])):
        match = _DEVICE.match(process)
        if match is None:
            continue
        platform = match[1].lower()
        read = _tpu_events if platform == "tpu" else _gpu_events
        events = read(lines, host.base_us)
        device = Device(
            host=host.file.host,
            index=int(match[2]),
            label=match[1],
            platform=platform,
            active=len(events.ops) > 0 or len(events.modules) > 0,
        )
        decoded.append((device, events))
    return decoded


def _natural(process: str) -> tuple[str, int]:
    match = _DEVICE.match(process)
    return (match[1], int(match[2])) if match else ("", 0)


def _times(span: Span, base_us: float) -> tuple[int, int]:
    return picoseconds(span.start_us - base_us), picoseconds(span.duration_us)


def _modules(lines: dict[str, list[Span]], base_us: float) -> list[ModuleRun]:
    runs: dict[int, ModuleRun] = {}
    for span in lines.get(_MODULES, []):
        match = _MODULE.match(span.name)
        name, program = (match[1], match[2]) if match else (span.name, None)
        run = ModuleRun(name, int(program) if program else None, *_times(span, base_us))
        runs.setdefault(run.start_ps, run)  # a second run cannot start at the same instant
    return sorted(runs.values(), key=lambda run: run.start_ps)


def _tpu_events(lines: dict[str, list[Span]], base_us: float) -> DeviceEvents:
    """The op line as it lies; asynchronous spans apart, because they overlap it."""
    modules = _modules(lines, base_us)
    starts = [run.start_ps for run in modules]
    rows, texts = [], TextPrograms({})
    table, ops, windows = OpTable(), Columns(), Columns()
    for line, columns in ((_OPS, ops), (_ASYNC, windows)):
        for span in lines.get(line, []):
            program = _program_at(modules, starts, _times(span, base_us)[0])
            rows.append((columns, span, program))
            texts.add(program, long_name(span) or "")
    programs = {program: texts.get(program) for _, _, program in rows}
    for columns, span, program in rows:
        place = table.find((program, span.name))
        if place is None:
            op = xla_op(span, program, programs[program])
            place = table.add((program, span.name), op)
        columns.append(place, *_times(span, base_us))
    return DeviceEvents(
        table=table.ops,
        ops=ops.events(),
        modules=modules,
        windows=windows.events() if len(windows) else None,
        step_markers=sorted(_times(span, base_us) for span in lines.get(_STEPS, [])),
    )


def _program_at(modules: list[ModuleRun], starts: list[int], start_ps: int) -> int | None:
    """The program whose run holds `start_ps`: op names repeat between programs."""
    place = bisect_right(starts, start_ps) - 1
    if place < 0 or start_ps > modules[place].start_ps + modules[place].duration_ps:
        return None
    return modules[place].program_id


def _gpu_events(lines: dict[str, list[Span]], base_us: float) -> DeviceEvents:
    """All streams; the lines of ops and modules on a GPU are derived from them by the converter."""
    table, columns = OpTable(), Columns()
    for line, line_spans in lines.items():
        if not line.startswith("Stream"):
            continue
        for span in line_spans:
            key = (span.name, str(span.args.get("hlo_op")), as_int(span.args.get("program_id")))
            place = table.find(key)
            if place is None:
                place = table.add(key, stream_op(span))
            columns.append(place, *_times(span, base_us))
    return DeviceEvents(
        table=table.ops,
        ops=columns.events(),
        modules=_modules(lines, base_us),
        step_markers=sorted(_times(span, base_us) for span in lines.get(_STEPS, [])),
    )


def _host_events(host: _Host) -> list[HostEvent]:
    found = []
    for process, lines in host.lines.items():
        if not process.startswith("/host:"):
            continue
        for line_spans in lines.values():
            for span in line_spans:
                step = as_int(span.args.get("step_num"))
                kind = "step" if step is not None else host_event_kind(span.name)
                if kind is not None:
                    found.append(HostEvent(kind, span.name, *_times(span, host.base_us), step))
    return sorted(found, key=lambda event: event.start_ps)
