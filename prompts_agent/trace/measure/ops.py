"""The ops that take most time, with their work against the chip's ceilings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prompts_agent.trace.capture import Op
from prompts_agent.trace.hlo.dots import DotDims
from prompts_agent.trace.hlo.program import HloProgram, Instruction
from prompts_agent.trace.measure.chips import peak_flops
from prompts_agent.trace.measure.classify import Activity, activity
from prompts_agent.trace.measure.device import DeviceMeasure
from prompts_agent.trace.profile import OpUse, Roofline
from prompts_agent.units import seconds_from_ps

if TYPE_CHECKING:
    from prompts_agent.hardware.chip import Chip

__all__ = ["flops_per_step", "top_ops"]

_TOP = 25
# More work in a time than the chip can do means that the work was counted wrong, not a record.
_BELIEVABLE_EFFICIENCY = 1.1


@dataclass(slots=True)
class _OpGroup:
    """One HLO op or kernel by name; a GPU runs some ops as several kernels."""

    op: Op
    counts: list[int] = field(default_factory=list)
    self_ps: float = 0.0
    flops: float | None = None
    bytes: float | None = None


def _groups(found: DeviceMeasure) -> list[_OpGroup]:
    groups: dict[tuple[str, int | None], _OpGroup] = {}
    for k, op in enumerate(found.table):
        count = int(found.ops.count[k])
        if not count or activity(op, found.device.platform) is Activity.UNUSED:
            continue
        group = groups.setdefault((op.name, op.program_id), _OpGroup(op))
        group.counts.append(count)
        group.self_ps += float(found.ops.self_ps[k])
        # Kernels of one op each name the whole op's work: it counts once.
        if op.flops is not None:
            group.flops = max(group.flops or 0.0, op.flops)
        if op.bytes is not None:
            group.bytes = max(group.bytes or 0.0, op.bytes)
    return sorted(groups.values(), key=lambda g: (-g.self_ps, g.op.name))


def top_ops(
    found: DeviceMeasure, programs: Mapping[int, HloProgram], chip: Chip | None
) -> tuple[OpUse, ...]:
    """The ops of most self time, loops and other containers left out."""
    groups = [
        group
        for group in _groups(found)
        if activity(group.op, found.device.platform) is not Activity.CONTAINER
    ]
    period = found.steps.step_ps if found.steps else found.busy_ps or 1.0
    return tuple(_use(g, found, programs, chip, period) for g in groups[:_TOP])


def _use(
    group: _OpGroup,
    found: DeviceMeasure,
    programs: Mapping[int, HloProgram],
    chip: Chip | None,
    period_ps: float,
) -> OpUse:
    op = group.op
    count = max(group.counts) / found.window_steps
    self_ps = group.self_ps / found.window_steps
    program = programs.get(op.program_id) if op.program_id is not None else None
    instruction = program.instructions.get(op.name) if program else None
    dot = program.dot_of(instruction) if program and instruction else None
    flops = None if group.flops is None else group.flops * count
    moved = None if group.bytes is None else group.bytes * count
    roofline, efficiency = Roofline.UNKNOWN, None
    if activity(op, found.device.platform) is Activity.COMPUTE:
        roofline, efficiency = _roofline(flops, moved, seconds_from_ps(self_ps), dot, found, chip)
    return OpUse(
        name=op.name,
        category=op.category or op.opcode,
        count=count,
        total_s=seconds_from_ps(self_ps),
        share=self_ps / period_ps,
        flops=flops,
        bytes=moved,
        roofline=roofline,
        roofline_efficiency=efficiency,
        shape=_shape(instruction),
        dot_dims=(dot.batch * dot.m, dot.n, dot.k) if dot else None,
        program=program.name if program else None,
        tf_op=op.tf_op,
    )


def _shape(instruction: Instruction | None) -> str | None:
    return str(instruction.shape) if instruction else None


def _roofline(
    flops: float | None,
    moved: float | None,
    time_s: float,
    dot: DotDims | None,
    found: DeviceMeasure,
    chip: Chip | None,
) -> tuple[Roofline, float | None]:
    """The ceiling that takes longer at peak, and that time ÷ the measured time."""
    peak = peak_flops(chip, found.device, dot.dtype if dot else "bf16")
    bandwidth = chip.hbm_bandwidth_bytes_per_s if chip else None
    bandwidth = bandwidth or found.device.memory_bandwidth_bytes_per_s
    compute_s = flops / peak if flops and peak else 0.0
    hbm_s = moved / bandwidth if moved and bandwidth else 0.0
    if time_s <= 0 or not (compute_s or hbm_s) or flops is None:
        return Roofline.UNKNOWN, None
    efficiency = max(compute_s, hbm_s) / time_s
    if efficiency > _BELIEVABLE_EFFICIENCY:
        return Roofline.UNKNOWN, None
    return (
        Roofline.COMPUTE if compute_s >= hbm_s else Roofline.HBM,
        min(efficiency, 1.0),
    )


def flops_per_step(found: DeviceMeasure) -> tuple[float, str] | None:
    """FLOPs of one device in a step, and where they come from.

    None where any op's work is opaque (a custom call without a count): a sum that leaves out the
    matmuls would be worse than none.
    """
    total, opaque = 0.0, False
    per_op: dict[str, float] = defaultdict(float)
    for group in _groups(found):
        kind = activity(group.op, found.device.platform)
        if kind is not Activity.COMPUTE:
            continue
        if group.flops is None:
            opaque = opaque or group.op.opcode in ("custom-call", "kernel")
            continue
        per_op[group.op.name] += group.flops * max(group.counts) / found.window_steps
    total = sum(per_op.values())
    if opaque or not total:
        return None
    if found.device.platform == "tpu":
        return total, "FLOP counters of the trace's ops, collectives left out"
    return total, "matmul sizes in the program's HLO"
