"""One GPU of a PyTorch profile: its op events, its steps, its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prompts_agent.trace.capture import Device, DeviceEvents, ModuleRun, Op
from prompts_agent.trace.columns import Columns, OpTable
from prompts_agent.trace.events import Span, as_int, picoseconds
from prompts_agent.trace.kernels import (
    UNKNOWN_COLLECTIVE,
    collective_opcode,
    memcpy_opcode,
    named_collective,
    short_name,
)
from prompts_agent.trace.nccl import Collective, ProcessGroups, partition_of, read_collective
from prompts_agent.trace.steps import Steps, annotated_steps, repeating_steps

__all__ = [
    "DEVICE_CATEGORIES",
    "device_events",
    "device_of",
    "is_kernel",
    "mark_derived_steps",
    "mark_profiler_steps",
]

_KERNEL, _MEMCPY, _MEMSET = "kernel", {"gpu_memcpy", "memcpy"}, {"gpu_memset", "memset"}
DEVICE_CATEGORIES = {_KERNEL} | _MEMCPY | _MEMSET
"""`cat` of what runs on the GPU, lower case: 2021's files write Kernel, Memcpy, Memset."""

_GFX = {(9, 0): "gfx90a", (9, 4): "gfx942", (9, 5): "gfx950"}
"""LLVM's target by compute capability; the last digit is a stepping that the trace leaves out."""


def is_kernel(span: Span) -> bool:
    """Whether the span is a kernel, neither copy nor memset."""
    return span.category.lower() == _KERNEL


def device_events(
    device_spans: Sequence[Span],
    base_us: float,
    groups: ProcessGroups,
    linked: Mapping[str, Collective],
) -> DeviceEvents:
    """All streams of a GPU as op events, in picoseconds since `base_us`.

    `linked` are the collectives of the host's `record_param_comms` by External id, for kernels
    that carry no metadata of their own.
    """
    table, columns = OpTable(), Columns()
    for span in device_spans:
        collective = None
        if is_kernel(span):
            collective = read_collective(span.args, groups)
            if collective is None and collective_opcode(span.name):
                collective = linked.get(str(span.args.get("External id")))
        key = (span.name, span.category, collective)
        place = table.find(key)
        if place is None:
            place = table.add(key, _op(span, collective, groups))
        columns.append(place, picoseconds(span.start_us - base_us), picoseconds(span.duration_us))
    return DeviceEvents(table=table.ops, ops=columns.events(), modules=[])


def _op(span: Span, collective: Collective | None, groups: ProcessGroups) -> Op:
    category = span.category.lower()
    if category in _MEMSET:
        return Op(name=span.name, opcode="memset", text=span.name)
    if category in _MEMCPY:
        return _copy(span)
    by_name = collective_opcode(span.name)
    if collective is None:
        return Op(name=short_name(span.name), opcode=by_name or "kernel", text=span.name)
    by_metadata = named_collective(collective.name) if collective.name else None
    return Op(
        name=short_name(span.name),
        opcode=by_metadata or by_name or UNKNOWN_COLLECTIVE,
        text=span.name,
        collective_bytes=collective.bytes,
        group_size=collective.group_size,
        groups=partition_of(collective.ranks, groups.world_size) if collective.ranks else None,
        axis=collective.axis,
    )


def _copy(span: Span) -> Op:
    opcode = memcpy_opcode(span.name)
    if opcode == "memcpy-unknown":
        opcode = memcpy_opcode(str(span.args.get("kind", "")))
    return Op(
        name=span.name,
        opcode=opcode,
        text=span.name,
        is_host_transfer=opcode in {"memcpy-h2d", "memcpy-d2h"},
    )


def mark_profiler_steps(events: DeviceEvents, marks: Sequence[Span], base_us: float) -> None:
    """Adds one marker per step number; a step that several streams mark spans them all."""
    bounds: dict[str, tuple[float, float]] = {}
    for span in marks:
        start, end = span.start_us, span.start_us + span.duration_us
        known = bounds.get(span.name, (start, end))
        bounds[span.name] = (min(start, known[0]), max(end, known[1]))
    events.step_markers.extend(
        (picoseconds(start - base_us), picoseconds(end - start))
        for start, end in sorted(bounds.values())
    )


def mark_derived_steps(
    events: DeviceEvents,
    annotations: Sequence[Span],
    device_spans: Sequence[Span],
    base_us: float,
) -> Steps | None:
    """Adds runs named after where they come from: an annotation, or a kernel that repeats."""
    on_gpu = [span for span in annotations if span.category.lower().startswith("gpu")]
    steps = annotated_steps((s.name, s.start_us, s.duration_us) for s in on_gpu or annotations)
    if steps is None:
        ordered = sorted(device_spans, key=lambda span: span.start_us)
        steps = repeating_steps([(s.name, s.start_us, s.duration_us) for s in ordered])
    if steps is not None:
        events.modules.extend(
            ModuleRun(steps.source, None, picoseconds(start - base_us), picoseconds(duration))
            for start, duration in steps.spans
        )
    return steps


def device_of(header: Mapping[str, Any], host: str, index: int) -> Device:
    """The GPU `index` as `deviceProperties` describes it."""
    listed = header.get("deviceProperties")
    known = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    own = next((item for item in known if item.get("id") == index), None)
    if own is None and len({str(item.get("name")) for item in known}) == 1:
        own = known[0]  # ROCm numbers kernels by physical GPU, properties by visible one
    own = own or {}
    memory = as_int(own.get("totalGlobalMem"))
    return Device(
        host=host, index=index, label=_label(own), platform="gpu", memory_bytes=memory or None
    )


def _label(properties: Mapping[str, Any]) -> str:
    """The GPU's name; where it is blank, what compute capability and warp size tell."""
    name = str(properties.get("name") or "").strip()
    if name:
        return name
    major, minor = as_int(properties.get("computeMajor")), as_int(properties.get("computeMinor"))
    if major is None or minor is None:
        return "unknown GPU"
    if as_int(properties.get("warpSize")) == 64:  # only AMD's data-centre GPUs
        return f"AMD {_GFX.get((major, minor), f'gfx{major}{minor}')}"
    return f"NVIDIA GPU of compute capability {major}.{minor}"
