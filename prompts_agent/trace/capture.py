"""Capture: what any reader hands to the measurements, whatever the file format was.

Device events are columns (numpy), because a trace of 500 MB holds 17 million of them; everything
that repeats (an op's name, opcode, shape) is held once in a table and referred to by index.
Times are picoseconds since the start of the capture, as integers: doubles lose events after
2.5 hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prompts_agent.trace.hlo.program import HloProgram
    from prompts_agent.trace.profile import TraceFile

__all__ = ["Capture", "Device", "DeviceEvents", "Events", "HostEvent", "ModuleRun", "Op"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """What all events of one op share.

    `opcode` is HLO's (`fusion`, `all-gather-start`, `copy-done`, `custom-call`), or for kernels
    without HLO one of `kernel`, `memcpy-h2d`, `memcpy-d2h`, `memcpy-d2d`, `memcpy-p2p`, `memset`,
    or a collective's opcode where the kernel's name or metadata tells. `flops` and `bytes` are per
    run of the op as the trace counted them; None where it did not.
    """

    name: str
    opcode: str
    program_id: int | None = None
    category: str | None = None
    text: str | None = None
    """Full HLO text, or the kernel's full name."""
    flops: float | None = None
    bytes: float | None = None
    is_host_transfer: bool = False
    """Touches host memory: `S(5)` in its shapes, infeed/outfeed, or a host memcpy."""
    collective_bytes: int | None = None
    group_size: int | None = None
    groups: tuple[tuple[int, ...], ...] | None = None
    """Ranks that take part, where the event itself (not its HLO) tells, as NCCL kernels do."""
    axis: str | None = None
    tf_op: str | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """Columns of length n, sorted by start."""

    op: NDArray[np.int32]
    start_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.op.shape[0])


class ModuleRun(NamedTuple):
    """One run of a program on a device. A tuple: a serving trace holds hundreds of thousands."""

    name: str
    program_id: int | None
    start_ps: int
    duration_ps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvents:
    """The events of one device, decoded.

    `ops` is the op line (TPU) or all streams (GPU); on a TPU it holds synchronous ops, `-start`
    issues and `-done` waits, one after another, with `while`/`conditional`/`call` spanning their
    bodies. `windows` are asynchronous spans from start to done, where the trace has them.
    """

    table: list[Op]
    ops: Events
    modules: list[ModuleRun]
    windows: Events | None = None
    step_markers: list[tuple[int, int]] = field(default_factory=list)
    """start_ps, duration_ps of user-marked steps on the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One chip or GPU, known before its events are decoded."""

    host: str
    index: int
    """Within its host, as the trace numbers it."""
    label: str
    """As the trace calls the kind: "TPU v6 Lite", "AMD gfx942", "NVIDIA A100-SXM4-80GB"."""
    platform: str
    """tpu, gpu or cpu."""
    memory_bytes: int | None = None
    memory_bandwidth_bytes_per_s: float | None = None
    peak_flops: float | None = None
    active: bool = True
    """False where the plane holds no events (GPUs of the host that the job did not use)."""


@dataclass(frozen=True, slots=True)
class HostEvent:
    """A host event that means something to the diagnosis: compile, transfer, input, marked step."""

    kind: str
    """compile, h2d, d2h, infeed, input or step."""
    name: str
    start_ps: int
    duration_ps: int
    step: int | None = None


class Capture:
    """A whole job's trace: devices, programs and host events. Readers subclass or fill it.

    Device events are decoded one device at a time, by `events(device)`, and not kept, so that
    memory is bounded by the largest device.
    """

    def __init__(
        self,
        *,
        file: TraceFile,
        devices: list[Device],
        programs: dict[int, HloProgram] | None = None,
        host_events: list[HostEvent] | None = None,
        versions: dict[str, str] | None = None,
        hbm_peak_bytes: int | None = None,
        hbm_peak_source: str | None = None,
        devices_in_job: int | None = None,
        missing: list[str] | None = None,
    ) -> None:
        self.file = file
        self.devices = devices
        self.programs = programs or {}
        self.host_events = host_events or []
        self.versions = versions or {}
        self.hbm_peak_bytes = hbm_peak_bytes
        self.hbm_peak_source = hbm_peak_source
        self.devices_in_job = devices_in_job
        self.missing = missing or []

    def events(self, device: Device) -> DeviceEvents:
        """Decodes the events of one device. Readers override this."""
        raise KeyError(device)

    def active_devices(self) -> Iterator[Device]:
        """Devices whose plane holds events."""
        return (device for device in self.devices if device.active)
