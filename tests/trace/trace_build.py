"""Small XSpaces and HLO programs with answers that can be worked out by hand.

Times are given in microseconds, because hand-worked answers are easier to read in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prompts_agent.trace.profile import TraceFile
from prompts_agent.trace.xspace.messages import hlo_proto, message_class, xspace

PS_PER_US = 10**6
_TYPES = {"f32": 11, "bf16": 16, "s32": 4, "u32": 8, "tuple": 13}

Span = tuple[str, float, float]  # name, start, duration in µs


class Plane:
    """A plane under construction."""

    def __init__(self, space: Any, name: str, stats: Mapping[str, Any] | None = None) -> None:
        self.message = space.planes.add(name=name)
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        for key, value in (stats or {}).items():
            self.stat(self.message.stats, key, value)

    def stat_id(self, name: str) -> int:
        if name not in self._stats:
            self._stats[name] = len(self._stats) + 1
            self.message.stat_metadata[self._stats[name]].name = name
        return self._stats[name]

    def stat(self, stats: Any, name: str, value: Any) -> None:
        stat = stats.add(metadata_id=self.stat_id(name))
        if isinstance(value, float):
            stat.double_value = value
        elif isinstance(value, bytes):
            stat.bytes_value = value
        elif isinstance(value, str) and value.startswith("ref:"):
            stat.ref_value = self.stat_id(value.removeprefix("ref:"))
        elif isinstance(value, str):
            stat.str_value = value
        elif value >= 2**63:
            stat.uint64_value = value
        else:
            stat.int64_value = value

    def event_id(
        self, name: str, display_name: str = "", stats: Mapping[str, Any] | None = None
    ) -> int:
        if name not in self._events:
            key = self._events[name] = len(self._events) + 1
            metadata = self.message.event_metadata[key]
            metadata.id, metadata.name, metadata.display_name = key, name, display_name
            for stat_name, value in (stats or {}).items():
                self.stat(metadata.stats, stat_name, value)
        return self._events[name]

    def line(
        self,
        name: str,
        spans: Sequence[Span | tuple[str, float, float, Mapping[str, Any]]],
        *,
        timestamp_ns: int = 0,
    ) -> None:
        line = self.message.lines.add(name=name, timestamp_ns=timestamp_ns, id=1)
        for span in spans:
            event = line.events.add(
                metadata_id=self.event_id(span[0]),
                offset_ps=round(span[1] * PS_PER_US),
                duration_ps=round(span[2] * PS_PER_US),
            )
            for stat_name, value in (span[3] if len(span) > 3 else {}).items():
                self.stat(event.stats, stat_name, value)


class Trace:
    """An XSpace under construction."""

    def __init__(self) -> None:
        self.message = xspace()()

    def plane(self, name: str, stats: Mapping[str, Any] | None = None) -> Plane:
        return Plane(self.message, name, stats)

    def tpu(self, index: int, ops: Sequence[Span], runs: Sequence[Span], **more: Any) -> Plane:
        """A TPU plane; an op's name is its HLO text, from which its display name is taken."""
        plane = self.plane(
            f"/device:TPU:{index}",
            {
                "device_type_string": more.pop("label", "TPU v6 Lite"),
                "peak_teraflops_per_second": 918.0,
            },
        )
        for name, *_ in ops:
            short = name.split(" = ")[0].lstrip("%")
            stats = {"program_id": more.get("program_id", 7)}
            plane.event_id(name, short, {**stats, **more.get("costs", {}).get(short, {})})
        plane.line("XLA Modules", runs)
        plane.line("XLA Ops", ops)
        return plane

    def programs(self, programs: Mapping[str, bytes]) -> None:
        """`{"jit_f(7)": HloProto bytes}`."""
        plane = self.plane("/host:metadata")
        for name, data in programs.items():
            plane.event_id(name, stats={"Hlo Proto": data})

    def bytes(self) -> bytes:
        return bytes(self.message.SerializeToString())


def trace_file(data: bytes = b"") -> TraceFile:
    return TraceFile(sha256="0" * 64, format="xspace", files=1, size_bytes=len(data))


def set_shape(proto: Any, dtype: str, dims: Sequence[int] = (), space: int = 0) -> None:
    proto.element_type = _TYPES[dtype]
    proto.dimensions.extend(dims)
    proto.layout.memory_space = space


class Program:
    """An HloProto under construction, with one entry computation."""

    def __init__(self, name: str = "jit_step", devices: int = 8) -> None:
        self.proto = hlo_proto()()
        self.module = self.proto.hlo_module
        self.module.name, self.module.id, self.module.entry_computation_id = name, 7, 1
        self.entry = self.module.computations.add(name="main", id=1)
        assignment = self.module.device_assignment
        assignment.replica_count, assignment.computation_count = 1, devices
        self._ids: dict[str, int] = {}

    def add(
        self,
        name: str,
        opcode: str,
        dtype: str = "f32",
        dims: Sequence[int] = (),
        operands: Sequence[str] = (),
        computation: Any = None,
    ) -> Any:
        instruction = (computation or self.entry).instructions.add(name=name, opcode=opcode)
        self._ids[name] = instruction.id = len(self._ids) + 1
        instruction.operand_ids.extend(self._ids[operand] for operand in operands)
        set_shape(instruction.shape, dtype, dims)
        return instruction

    def computation(self, name: str) -> Any:
        return self.module.computations.add(name=name, id=len(self.module.computations) + 1)

    def bytes(self) -> bytes:
        return bytes(self.proto.SerializeToString())


def iota_list(groups: int, size: int, reshape: Sequence[int], perm: Sequence[int] = ()) -> Any:
    return message_class("prompts_agent.hlo.IotaReplicaGroupListProto")(
        num_replica_groups=groups,
        num_devices_per_group=size,
        iota_reshape_dims=reshape,
        iota_transpose_perm=perm,
    )


def mesh_proto(axes: Mapping[str, int]) -> Any:
    mesh = message_class("prompts_agent.hlo.MeshProto")()
    for name, size in axes.items():
        mesh.axes.add(name=name, size=size)
    return mesh
