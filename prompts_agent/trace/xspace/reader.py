"""XSpace files of one job, one per host, to a Capture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prompts_agent.errors import DamagedTraceError, NotDiagnosableError
from prompts_agent.trace.capture import Capture, Device, DeviceEvents, HostEvent, Op
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.profile import TraceFile
from prompts_agent.trace.second_source import OpCounters, SecondSource, ask_xprof
from prompts_agent.trace.xspace.clock import Clock
from prompts_agent.trace.xspace.cpu import CpuDevices, cpu_devices
from prompts_agent.trace.xspace.file import PlaneIndex, XSpaceFile, readable
from prompts_agent.trace.xspace.gpu import gpu_events, stream_lines
from prompts_agent.trace.xspace.host import AllocatorUse, HostReading, read_host
from prompts_agent.trace.xspace.labels import gpu_label, tpu_label
from prompts_agent.trace.xspace.programs import read_programs, read_simulated, read_versions
from prompts_agent.trace.xspace.stats import StatNames
from prompts_agent.trace.xspace.tpu import MODULE_LINE, OP_LINE, tpu_events
from prompts_agent.units import GB, TERA

__all__ = ["XSpaceCapture", "read_xspace"]

_DEVICE_PLANE = re.compile(r"^/device:(TPU|GPU):(\d+)$")
_HOST_PLANE = "/host:CPU"


class XSpaceCapture(Capture):
    """Reads a device's events from the files again when asked."""

    def __init__(
        self,
        sources: Sequence[tuple[str, Path | bytes]],
        cpu: dict[str, CpuDevices],
        counters: dict[tuple[int, str], OpCounters],
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._sources = dict(sources)
        self._cpu = cpu
        self._counters = counters

    def events(self, device: Device) -> DeviceEvents:
        """Decodes the events of one device. Raises `DamagedTraceError` where the file changed."""
        if device.platform == "cpu":
            return self._cpu[device.host].events(device.index)
        label = f"{device.host}, device {device.index}"
        with XSpaceFile.open(self._sources[device.host], label=label) as file, readable(label):
            clock = Clock.of(file)
            name = f"/device:{device.platform.upper()}:{device.index}"
            plane = next(plane for plane in file.planes if plane.name == name)
            if device.platform == "tpu":
                return tpu_events(file, plane, self.programs, clock)
            return _counted(gpu_events(file, plane, self.programs, clock), self._counters)


class _Merged:
    """What the hosts of a job add up to."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.programs: dict[int, HloProgram] = {}
        self.host_events: list[HostEvent] = []
        self.versions: dict[str, str] = {}
        self.allocators: list[AllocatorUse] = []
        self.cpu: dict[str, CpuDevices] = {}
        self.caveats: list[str] = []
        self.cut_devices: list[str] = []
        self.missing: list[str] = []


def read_xspace(
    sources: Sequence[tuple[str, Path | bytes]], file: TraceFile, *, xprof: bool = False
) -> XSpaceCapture:
    """Reads the hosts of one job; `sources` are (host name, file or bytes), already unzipped.

    With `xprof`, XProf is asked for a peak memory and for GPU ops' FLOPs and bytes that the trace's
    own events do not show: seconds of time, and gigabytes for a large trace.

    Device events stay in the files until `events(device)`. Raises `DamagedTraceError`,
    `EmptyTraceError`, and `NotDiagnosableError` where no device did anything.
    """
    merged = _Merged()
    for host, source in sources:
        label = str(source) if isinstance(source, Path) else host
        with XSpaceFile.open(source, label=label) as space, readable(label):
            prefix = f"{host}: " if len(sources) > 1 else ""
            _read_host_file(space, host, prefix, merged)
    _require_devices(merged, file)
    peak = max(merged.allocators, key=_peak, default=None)
    second = _second(sources, merged) if xprof else SecondSource()
    return XSpaceCapture(
        sources,
        merged.cpu,
        second.ops,
        file=_with_caveats(file, merged.caveats),
        devices=merged.devices,
        programs=merged.programs,
        host_events=merged.host_events,
        versions=merged.versions,
        hbm_peak_bytes=(_peak(peak) or None) if peak else second.hbm_peak_bytes,
        hbm_peak_source=_peak_source(peak) if peak else _XPROF_SOURCE,
        devices_in_job=max((p.device_count or 0 for p in merged.programs.values()), default=0)
        or None,
        missing=merged.missing,
    )


_XPROF_SOURCE = "memory_profile of XProf, largest allocator of a device"


def _second(sources: Sequence[tuple[str, Path | bytes]], merged: _Merged) -> SecondSource:
    """XProf's answers for all hosts together; what it could not tell, and why, is a caveat."""
    answers = [ask_xprof(source) for _, source in sources if isinstance(source, Path)]
    merged.caveats += [f"XProf was asked and told nothing: {a.reason}" for a in answers if a.reason]
    ops = {key: counters for answer in answers for key, counters in answer.ops.items()}
    if ops and any(device.platform == "gpu" for device in merged.devices):
        merged.caveats.append("FLOPs and bytes of GPU ops are XProf's where the trace has none")
    peaks = [answer.hbm_peak_bytes for answer in answers if answer.hbm_peak_bytes]
    return SecondSource(hbm_peak_bytes=max(peaks, default=None), ops=ops)


def _counted(events: DeviceEvents, counters: dict[tuple[int, str], OpCounters]) -> DeviceEvents:
    """The same events, their ops with XProf's counters where they have none of their own."""
    if not counters:
        return events

    def counted(op: Op) -> Op:
        known = counters.get((op.program_id, op.name)) if op.program_id is not None else None
        if known is None:
            return op
        return replace(op, flops=op.flops or known.flops, bytes=op.bytes or known.bytes)

    return replace(events, table=[counted(op) for op in events.table])


def _with_caveats(file: TraceFile, caveats: list[str]) -> TraceFile:
    """The same file with caveats added."""
    return file.model_copy(update={"caveats": (*file.caveats, *caveats)}) if caveats else file


def _peak(use: AllocatorUse) -> int:
    return max(use.peak_in_use_bytes, use.peak_with_reserved_bytes)


def _peak_source(use: AllocatorUse) -> str:
    return (
        f"allocator events of {use.name}: most in use {use.peak_in_use_bytes} bytes, "
        f"most in use with what programs reserve {use.peak_with_reserved_bytes} bytes"
    )


def _read_host_file(space: XSpaceFile, host: str, prefix: str, merged: _Merged) -> None:
    merged.caveats += [prefix + caveat for caveat in space.caveats]
    merged.caveats += [f"{prefix}the profiler reported: {error}" for error in space.errors]
    programs, unreadable = read_programs(space)
    merged.programs.update(programs)
    merged.caveats += [f"{prefix}the HLO of {name} cannot be read" for name in unreadable]
    merged.versions.update(read_versions(space))
    simulated = read_simulated(space)
    merged.caveats += [prefix + simulated] if simulated else []
    clock = Clock.of(space)
    plane = next((p for p in space.planes if p.name == _HOST_PLANE), None)
    head = space.plane_head(plane) if plane is not None and plane.has_names else None
    reading = HostReading()
    if plane is not None and head is not None:
        reading = read_host(space, plane, head, clock)
        merged.host_events += reading.events
        merged.allocators += reading.allocators.values()
        if reading.dropped:
            merged.caveats.append(f"{prefix}{reading.dropped} host events were passed over")
    devices = _devices(space, host, reading, merged, prefix)
    if not devices and plane is not None and head is not None:
        found = cpu_devices(space, plane, head, programs, clock)
        if found is not None:
            merged.cpu[host] = found
            devices = [
                Device(host=host, index=k, label="cpu", platform="cpu") for k in found.ordinals
            ]
    merged.devices += devices
    if not programs and devices:
        merged.missing.append(
            f"{prefix}no HLO: the trace holds no compiled program, so mesh, shardings, matmul "
            "sizes and replica groups are unknown"
        )


def _devices(
    space: XSpaceFile, host: str, reading: HostReading, merged: _Merged, prefix: str
) -> list[Device]:
    devices = []
    for plane in space.planes:
        match = _DEVICE_PLANE.match(plane.name)
        if match is None:
            continue
        if not plane.has_names:
            merged.cut_devices.append(plane.name)
            merged.caveats.append(
                f"{prefix}{plane.name} is cut before the names of its events: it is not measured"
            )
        devices.append(_device(space, plane, host, match[1].lower(), int(match[2])))
    by_index = sorted(devices, key=lambda device: device.index)
    capacities = {use.capacity_bytes for use in reading.allocators.values() if use.capacity_bytes}
    if len(capacities) == 1:
        capacity = capacities.pop()
        by_index = [
            device if device.memory_bytes else replace(device, memory_bytes=capacity)
            for device in by_index
        ]
    return by_index


def _device(space: XSpaceFile, plane: PlaneIndex, host: str, platform: str, index: int) -> Device:
    head = space.plane_head(plane)
    stats = StatNames(head).values(head.stats)
    lines = [plane.line(OP_LINE), plane.line(MODULE_LINE)]
    busy = [line for line in lines if line] if platform == "tpu" else stream_lines(plane)
    active = plane.has_names and any(line.end > line.events for line in busy)
    if platform == "tpu":
        teraflops = stats.get("peak_teraflops_per_second")
        bandwidth = stats.get("peak_hbm_bw_gigabytes_per_second")
        return Device(
            host=host,
            index=index,
            label=tpu_label(stats),
            platform="tpu",
            peak_flops=teraflops * TERA if teraflops else None,
            memory_bandwidth_bytes_per_s=bandwidth * GB if bandwidth else None,
            active=active,
        )
    return Device(
        host=host,
        index=index,
        label=gpu_label(stats),
        platform="gpu",
        memory_bytes=stats.get("memory_size") or None,
        memory_bandwidth_bytes_per_s=stats.get("memory_bandwidth") or None,
        active=active,
    )


def _require_devices(merged: _Merged, file: TraceFile) -> None:
    if any(device.active for device in merged.devices):
        return
    if merged.programs:
        merged.missing.append(
            "no device did anything in the capture: only the structure of its programs is known"
        )
        return
    if merged.cut_devices:
        raise DamagedTraceError(
            f"the trace ({file.size_bytes} bytes) ends within {merged.cut_devices[0]}",
            rule="it is cut off before any device is whole, names of events included",
            cure="Copy the file again, or capture again and wait until stop_trace returns.",
        )
    what = f"{len(merged.devices)} idle devices" if merged.devices else "no device"
    raise NotDiagnosableError(
        f"the trace ({file.size_bytes} bytes) shows {what} and no program",
        rule="a diagnosis needs device events or compiled programs",
        cure="Capture two to five steps while the devices work; on NVIDIA GPUs allow performance "
        "counters for users (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), and close other profilers.",
    )
