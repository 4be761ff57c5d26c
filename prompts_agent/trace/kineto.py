"""PyTorch's profiler JSON (Kineto): one file a rank, one or more GPUs a file.

Kernels, copies and sets of all streams of a GPU become its op events. A step is a `ProfilerStep`
annotation, else a repeated annotation named like one, else what repeats as a whole, else unknown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prompts_agent.errors import NotDiagnosableError, TraceError
from prompts_agent.trace.capture import Device, DeviceEvents, HostEvent
from prompts_agent.trace.columns import LoadedCapture
from prompts_agent.trace.discover import InputFile
from prompts_agent.trace.events import (
    Span,
    as_int,
    as_number,
    picoseconds,
    read_json_trace,
    spans,
)
from prompts_agent.trace.kernels import collective_opcode
from prompts_agent.trace.kineto_device import (
    DEVICE_CATEGORIES,
    device_events,
    device_of,
    is_kernel,
    mark_derived_steps,
    mark_profiler_steps,
)
from prompts_agent.trace.nccl import MAX_RANKS, ProcessGroups, read_collective
from prompts_agent.trace.profile import TraceFile
from prompts_agent.trace.steps import profiler_step

__all__ = ["read_kineto"]

_LAUNCH = re.compile(r"^(?:cuda|hip|cu)(?:Module|Ext|Graph)?Launch", re.IGNORECASE)
_RANK = re.compile(r"rank[_\-.]?(\d{1,9})", re.IGNORECASE)
_VERSIONS = (
    "cuda_runtime_version",
    "cuda_driver_version",
    "hip_runtime_version",
    "roctracer_version",
)


@dataclass(slots=True)
class _Rank:
    """What one file holds, reduced to what is kept."""

    file: InputFile
    rank: int | None
    world_size: int | None
    versions: dict[str, str]
    caveats: list[str]
    missing: list[str] = field(default_factory=list)
    decoded: list[tuple[Device, DeviceEvents]] = field(default_factory=list)
    host_events: list[HostEvent] = field(default_factory=list)
    launches: int = 0
    peak_bytes: int | None = None


def read_kineto(files: Sequence[InputFile], file: TraceFile) -> LoadedCapture:
    """Reads the ranks of one job. Raises `NotDiagnosableError` where no GPU event is in any file.

    JSON is parsed one file at a time and dropped, so memory is bounded by the largest rank.
    """
    ranks = [_read_rank(item) for item in files]
    _refuse_same_rank(ranks)
    if not any(rank.decoded for rank in ranks):
        raise _no_gpu_events(ranks)
    world = max((rank.world_size for rank in ranks if rank.world_size), default=None)
    missing = [note for rank in ranks for note in rank.missing]
    peaks = [rank.peak_bytes for rank in ranks if rank.peak_bytes]
    caveats = dict.fromkeys((*file.caveats, *(note for rank in ranks for note in rank.caveats)))
    first = min(ranks, key=lambda rank: (rank.rank is None, rank.rank or 0))
    capture = LoadedCapture(
        file=file.model_copy(update={"caveats": tuple(caveats)}),
        devices=[device for rank in ranks for device, _ in rank.decoded],
        host_events=first.host_events,
        versions=first.versions,
        hbm_peak_bytes=max(peaks, default=None),
        hbm_peak_source="PyTorch allocator's largest total allocation" if peaks else None,
        devices_in_job=world,
        missing=list(dict.fromkeys(missing)),
    )
    capture.decoded = [pair for rank in ranks for pair in rank.decoded]
    return capture


def _refuse_same_rank(ranks: list[_Rank]) -> None:
    seen: dict[int, InputFile] = {}
    for rank in ranks:
        if rank.rank is None:
            continue
        if rank.rank in seen:
            raise TraceError(
                f"rank {rank.rank} occurs twice: {seen[rank.rank].path} and {rank.file.path}",
                rule="each file of a job is another rank",
                cure="Give the files of one capture only.",
            )
        seen[rank.rank] = rank.file


def _no_gpu_events(ranks: list[_Rank]) -> NotDiagnosableError:
    launches = sum(rank.launches for rank in ranks)
    names = ", ".join(rank.file.path.name for rank in ranks[:3])
    if launches:
        return NotDiagnosableError(
            f"{names}: the host launched {launches:,} kernels, but no kernel was recorded",
            rule="GPU activity needs CUPTI (or roctracer), which has one subscriber at a time and "
            "may need a privilege (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)",
            cure="Stop other profilers (nsys, DCGM), allow performance counters to all users "
            "(NVreg_RestrictProfilingToAdminUsers=0), and capture again.",
        )
    return NotDiagnosableError(
        f"{names}: no GPU events, only the host's",
        rule="layouts are judged by what the devices did",
        cure="Profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA].",
    )


def _read_rank(item: InputFile) -> _Rank:
    trace = read_json_trace(item.path)
    found, broken = spans(trace.events)
    info = trace.header.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    named = _RANK.search(item.path.name)
    rank = as_int(info.get("rank"))
    result = _Rank(
        file=item,
        rank=rank if rank is not None else int(named[1]) if named else None,
        world_size=_world_size(info),
        versions=_versions(trace.header, info),
        caveats=list(trace.caveats),
        launches=sum(bool(_LAUNCH.match(span.name)) for span in found),
        peak_bytes=_memory_peak(trace.events),
    )
    if broken:
        result.caveats.append(f"{item.path.name}: {broken:,} events with impossible times dropped")
    if not info:
        result.missing.append(
            "world size and process groups (distributedInfo is written where torch.distributed "
            "is initialised before the profiler starts)"
        )
    _read_devices(
        result, trace.header, found, ProcessGroups(info.get("pg_config"), result.world_size)
    )
    return result


def _world_size(info: Mapping[str, Any]) -> int | None:
    world = as_int(info.get("world_size"))
    return world if world is not None and 0 < world <= MAX_RANKS else None


def _versions(header: Mapping[str, Any], info: Mapping[str, Any]) -> dict[str, str]:
    found = {key: header.get(key) for key in _VERSIONS} | {"nccl_version": info.get("nccl_version")}
    return {key: str(value) for key, value in found.items() if isinstance(value, int | float | str)}


def _read_devices(
    result: _Rank, header: Mapping[str, Any], found: list[Span], groups: ProcessGroups
) -> None:
    by_device: dict[int, list[Span]] = defaultdict(list)
    for span in found:
        if span.category.lower() in DEVICE_CATEGORIES:
            by_device[_device_index(span)].append(span)
    on_device = [span for device_spans in by_device.values() for span in device_spans]
    if not on_device:
        return
    marks = [span for span in found if profiler_step(span.name) is not None]
    on_host = [span for span in marks if not span.category.lower().startswith("gpu")]
    base_us = min(span.start_us for span in (*on_device, *on_host))
    linked = {
        str(span.args.get("External id")): collective
        for span in found
        if span.name == "record_param_comms"
        and (collective := read_collective(span.args, groups)) is not None
    }
    annotations = [span for span in found if span.category.lower().endswith("user_annotation")]
    for index, device_spans in sorted(by_device.items()):
        events = device_events(device_spans, base_us, groups, linked)
        on_gpu = [s for s in marks if s.category.lower().startswith("gpu") and s.pid == index]
        if on_gpu or on_host:
            mark_profiler_steps(events, on_gpu or on_host, base_us)
        else:
            _derive(result, events, annotations, device_spans, base_us)
        result.decoded.append((device_of(header, result.file.host, index), events))
    result.host_events = _host_events(found, on_host, base_us)
    _note_missing(result, on_device)


def _derive(
    result: _Rank,
    events: DeviceEvents,
    annotations: list[Span],
    device_spans: list[Span],
    base_us: float,
) -> None:
    steps = mark_derived_steps(events, annotations, device_spans, base_us)
    if steps is not None:
        result.caveats.append(f"{result.file.path.name}: steps derived from {steps.source}")


def _device_index(span: Span) -> int:
    index = as_int(span.args.get("device"))
    if index is None:
        index = as_int(span.pid)
    return index if index is not None else 0


def _host_events(found: list[Span], steps: list[Span], base_us: float) -> list[HostEvent]:
    kinds = [("step", span) for span in steps]
    kinds += [("input", span) for span in found if span.name.startswith("enumerate(DataLoader)")]
    return [
        HostEvent(
            kind,
            span.name,
            picoseconds(span.start_us - base_us),
            picoseconds(span.duration_us),
            profiler_step(span.name),
        )
        for kind, span in kinds
    ]


def _memory_peak(events: list[dict[str, Any]]) -> int | None:
    """Largest `Total Allocated` of a GPU among `[memory]` instants (profile_memory=True)."""
    peak = 0.0
    for event in events:
        args = event.get("args")
        if event.get("name") != "[memory]" or not isinstance(args, dict):
            continue
        if args.get("Device Type") != 0:  # c10::DeviceType: 0 is the host
            peak = max(peak, as_number(args.get("Total Allocated")) or 0.0)
    return int(peak) or None


def _note_missing(result: _Rank, on_device: list[Span]) -> None:
    kernels = [span for span in on_device if is_kernel(span)]
    from_graph = sum("External id" not in span.args for span in kernels)
    if from_graph > 0.5 * len(kernels):
        result.missing.append(
            f"operators behind {from_graph:,} of {len(kernels):,} kernels (run from a CUDA graph, "
            "which keeps kernel names only)"
        )
    collectives = [span for span in kernels if collective_opcode(span.name)]
    plain = sum("Collective name" not in span.args for span in collectives)
    if plain:
        result.missing.append(
            f"size and ranks of {plain:,} of {len(collectives):,} communication kernels (custom "
            "kernels, or PyTorch before 2.4)"
        )
