"""XSpace: the planes of a simulated trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prompts_agent.compile.schedule.rates import OpCosts
from prompts_agent.compile.simulate.events import DeviceLines, Event
from prompts_agent.hardware.chip import Chip
from prompts_agent.trace.hlo.program import HloProgram, Instruction
from prompts_agent.trace.xspace.messages import xspace
from prompts_agent.trace.xspace.programs import SIMULATED_STAT
from prompts_agent.units import GB, TERA

__all__ = ["trace_bytes"]

_HOST = "simulated"


def trace_bytes(
    lines: DeviceLines,
    program: HloProgram,
    costs: OpCosts,
    *,
    chip: Chip,
    hlo: bytes,
    said: str,
) -> bytes:
    """A serialized XSpace of one TPU device. `said` is what marks it as simulated, a sentence."""
    space = xspace()()
    space.hostnames.append(_HOST)
    space.warnings.append(said)
    module = f"{program.name}({program.program_id})"
    device = _Plane(space, "/device:TPU:0")
    device.stats(
        {
            "device_type_string": chip.label,
            "peak_teraflops_per_second": chip.peak_flops.get("bf16", 0.0) / TERA,
            "peak_hbm_bw_gigabytes_per_second": chip.hbm_bandwidth_bytes_per_s / GB,
        }
    )
    for number, (name, instruction) in enumerate(lines.used.items(), 1):
        # XProf finds an op by its program and its symbol, and passes over what has neither.
        stats = _costs(program, costs, instruction) | {"symbol_id": number}
        device.name(name, _text(instruction), stats)
    steps = [Event(str(k), start, length) for k, (start, length) in enumerate(lines.steps)]
    runs = [Event(module, event.start_ps, event.duration_ps) for event in steps]
    device.line("Steps", steps)
    device.line("XLA Modules", runs)
    device.line("XLA Ops", lines.ops)
    if lines.windows:
        device.line("Async XLA Ops", lines.windows)
    metadata = _Plane(space, "/host:metadata")
    metadata.stats({SIMULATED_STAT: said})
    metadata.name(module, module, {"Hlo Proto": hlo})
    _Plane(space, "/host:CPU")
    return bytes(space.SerializeToString(deterministic=True))


def _text(instruction: Instruction) -> str:
    """The instruction as HLO text, which is how a TPU's trace names its ops."""
    operands = ", ".join(f"%{name}" for name in instruction.operands)
    return f"%{instruction.name} = {instruction.shape} {instruction.opcode}({operands})"


def _costs(program: HloProgram, costs: OpCosts, instruction: Instruction) -> dict[str, Any]:
    found: dict[str, Any] = {
        "program_id": program.program_id,
        "hlo_category": instruction.opcode,
    }
    if instruction.op_name:
        found["tf_op"] = instruction.op_name
    if instruction.opcode not in ("while", "conditional", "call"):
        found["flops"] = round(costs.flops(instruction))
        found["bytes_accessed"] = costs.touched_bytes(instruction)
    return found


class _Plane:
    """A plane under construction: names and stats get ids as they come."""

    def __init__(self, space: Any, name: str) -> None:
        self._plane = space.planes.add(name=name, id=len(space.planes))
        self._names: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._lines = 0

    def stats(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            self._stat(self._plane.stats, name, value)

    def name(self, key: str, text: str, stats: Mapping[str, Any]) -> None:
        """A name of events; `key` is what `line` calls it, and what a reader shows."""
        metadata = self._plane.event_metadata[self._id(key)]
        metadata.name = text
        if text != key:
            metadata.display_name = key
        for name, value in stats.items():
            self._stat(metadata.stats, name, value)

    def line(self, name: str, events: Iterable[Event]) -> None:
        self._lines += 1
        line = self._plane.lines.add(id=self._lines, name=name)
        for event in events:
            line.events.add(
                metadata_id=self._id(event.name),
                offset_ps=event.start_ps,
                duration_ps=event.duration_ps,
            )

    def _id(self, key: str) -> int:
        if key not in self._names:
            self._names[key] = len(self._names) + 1
            metadata = self._plane.event_metadata[self._names[key]]
            metadata.id, metadata.name = self._names[key], key
        return self._names[key]

    def _stat(self, stats: Any, name: str, value: Any) -> None:
        if name not in self._stats:
            self._stats[name] = len(self._stats) + 1
            metadata = self._plane.stat_metadata[self._stats[name]]
            metadata.id, metadata.name = self._stats[name], name
        stat = stats.add(metadata_id=self._stats[name])
        if isinstance(value, float):
            stat.double_value = value
        elif isinstance(value, bytes):
            stat.bytes_value = value
        elif isinstance(value, str):
            stat.str_value = value
        else:
            stat.uint64_value = value
