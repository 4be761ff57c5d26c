"""Surprises: where the compiled program is not what the layout meant, and what that costs.

Only the compiler knows: the same specs give a reduce-scatter on one slice and an all-reduce on
another. Each is told apart by kind, axis and bytes of what is in the schedule.
"""

from __future__ import annotations

from collections.abc import Iterator

from prompts_agent.compile.schedule.records import CompiledCollective, Schedule, Surprise
from prompts_agent.compile.schedule.scheduled import Scheduled
from prompts_agent.compile.schedule.timeline import Timeline
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.count import parameters
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.hlo.shape import Shape
from prompts_agent.units import format_bytes, format_seconds
from prompts_agent.workload.workload import Workload

__all__ = ["surprises"]

_PART = 0.25
"""Of all weights' gradients: less is norms, scalars, or a table alone."""
_SHARE = 0.01
"""Of a step; copies that take less are not worth a sentence."""
_SMALL = 2**16
"""Bytes of an array: of a smaller copy the launch takes the time, not what it moves."""
_TWO_BYTES = 2
_COPIES = ("copy", "transpose")


def surprises(
    scheduled: Scheduled, step: Timeline, schedule: Schedule, layout: Layout, workload: Workload
) -> tuple[Surprise, ...]:
    """What differs from the layout's meaning, the costliest first."""
    found = [
        *_reduced_whole(schedule, layout, workload),
        *_reduced_residuals(schedule, layout),
        *_gathered_tokens(schedule, layout, workload),
        *_bounced(step, schedule),
        *_replicated(scheduled.program, layout, workload),
    ]
    return tuple(sorted(found, key=lambda one: (-one.seconds, -one.bytes, one.kind)))


def _over(use: CompiledCollective, axis: Axis) -> bool:
    return axis.value in (use.axis or "").split("+")


def _reduced_whole(schedule: Schedule, layout: Layout, workload: Workload) -> Iterator[Surprise]:
    """Gradients of sharded weights are meant to be reduce-scattered: half of what an all-reduce
    moves.
    """
    if not workload.phase.is_training or layout.mesh.size(Axis.FSDP) == 1:
        return
    cut = layout.mesh.size(Axis.TENSOR) * layout.mesh.size(Axis.PIPELINE)
    cut *= layout.mesh.size(Axis.EXPERT)
    least = _PART * _TWO_BYTES * parameters(workload.model).total / cut
    for use in schedule.collectives:
        if use.kind == "all-reduce" and _over(use, Axis.FSDP) and use.bytes > least:
            yield Surprise(
                kind="all-reduce for reduce-scatter",
                axis=use.axis,
                bytes=use.bytes // 2,
                seconds=use.exposed_s / 2,
                text=f"Gradients are all-reduced over {use.axis} ({format_bytes(use.bytes)} a "
                "step) where a reduce-scatter was meant, which moves half of that: up to "
                f"{format_seconds(use.exposed_s / 2)} of a step. {_chosen(workload)}",
            )


def _chosen(workload: Workload) -> str:
    if find_chip(workload.topology.chip).platform != "tpu":
        return "Constrain the gradients to the specs of the weights."
    # libtpu 0.0.52, the same program and flags on v6e.
    return (
        "XLA chooses by the slice's shape: on v6e 4x4, 8x8 and 16x16 get the all-reduce, 2x4, 4x8 "
        "and 8x16 the reduce-scatter."
    )


def _reduced_residuals(schedule: Schedule, layout: Layout) -> Iterator[Surprise]:
    if not layout.sequence_parallel or layout.mesh.size(Axis.TENSOR) == 1:
        return
    # Over tensor and other axes together go the gradients of tables and norms.
    reduced = [u for u in schedule.collectives if u.axis == Axis.TENSOR.value]
    whole = sum(use.bytes for use in reduced if use.kind == "all-reduce")
    scattered = _bytes(schedule, "reduce-scatter", Axis.TENSOR)
    if whole > scattered:
        seconds = sum(use.exposed_s for use in reduced if use.kind == "all-reduce") / 2
        yield Surprise(
            kind="all-reduce for reduce-scatter",
            axis=Axis.TENSOR.value,
            bytes=whole,
            seconds=seconds,
            text="sequence_parallel is on, yet residuals are all-reduced over tensor "
            f"({format_bytes(whole)} a step, {format_bytes(scattered)} reduce-scattered): what the "
            "reduction leaves whole is then cut, and gathered again. Constrain the block's output "
            "to the cut sequence right after its last matmul.",
        )


def _gathered_tokens(schedule: Schedule, layout: Layout, workload: Workload) -> Iterator[Surprise]:
    """Tokens are meant to be sent to their experts, not gathered on every rank of them."""
    if workload.model.moe is None or layout.mesh.size(Axis.EXPERT) == 1:
        return
    gathered = _bytes(schedule, "all-gather", Axis.EXPERT)
    sent = _bytes(schedule, "all-to-all", Axis.EXPERT)
    # Dense weights are gathered over the expert axis too, forward and backward.
    weights = 3 * _TWO_BYTES * parameters(workload.model).total / layout.mesh.size(Axis.TENSOR)
    if gathered - weights > sent:
        seconds = _exposed(schedule, "all-gather", Axis.EXPERT)
        yield Surprise(
            kind="all-gather for all-to-all",
            axis=Axis.EXPERT.value,
            bytes=gathered,
            seconds=seconds,
            text=f"{format_bytes(gathered)} a step are gathered over expert and "
            f"{format_bytes(sent)} exchanged: tokens are copied to every rank in place of being "
            f"sent to their experts, {format_seconds(seconds)} of a step exposed. Dispatch them by "
            "an explicit all-to-all (shard_map), or with a grouped-matmul kernel.",
        )


def _bounced(step: Timeline, schedule: Schedule) -> Iterator[Surprise]:
    """Copies in HBM change a layout or a place; matmuls would read what is there."""
    seconds, moved, count = 0.0, 0, 0
    for timeline, times in step.walk():
        for span in timeline.spans:
            large = span.instruction.shape.bytes >= _SMALL
            if large and span.instruction.opcode in _COPIES and span.duration_s > 0.0:
                seconds += times * span.duration_s
                moved += times * span.instruction.shape.bytes
                count += times
    if seconds > _SHARE * schedule.step_time_s:
        yield Surprise(
            kind="buffers bounced",
            axis=None,
            bytes=moved,
            seconds=seconds,
            text=f"{count} copies a step put {format_bytes(moved)} into another layout or place: "
            f"{format_seconds(seconds)} of a step. A scan's carry that is read and written in "
            "different layouts, or an offloaded value in the wrong one, does this.",
        )


def _replicated(program: HloProgram, layout: Layout, workload: Workload) -> Iterator[Surprise]:
    """What layers hand on and keep for the backward pass, whole on each tensor rank."""
    ranks = layout.mesh.size(Axis.TENSOR)
    if ranks == 1 or not workload.phase.is_training:
        return
    held = sum(shape.bytes for shape in _saved_residuals(program, layout, workload))
    if held:
        freed = held - held // ranks
        yield Surprise(
            kind="activations replicated",
            axis=Axis.TENSOR.value,
            bytes=freed,
            seconds=0.0,
            text=f"What layers keep for the backward pass ({format_bytes(held)}) is whole on each "
            f"of {ranks} tensor ranks: sequence_parallel would cut it, and free "
            f"{format_bytes(freed)} of every device.",
        )


def _saved_residuals(program: HloProgram, layout: Layout, workload: Workload) -> list[Shape]:
    """Stacks of residuals that loops carry, uncut in sequence: [layers, batch, sequence, embed].

    Stacked weights have other dims in these places: [layers, heads, head_dim, embed].
    """
    sequence = workload.sequence // layout.mesh.size(Axis.CONTEXT)
    found: dict[tuple[str, tuple[int, ...]], Shape] = {}
    for i in program.instructions.values():
        if i.opcode != "while":
            continue
        for shape in i.shape.parts:
            whole = shape.dims[2:] == (sequence, workload.model.embed)
            if whole and len(shape.dims) == 4 and shape.dims[0] == i.trip_count:
                found[shape.dtype, shape.dims] = shape
    return list(found.values())


def _bytes(schedule: Schedule, kind: str, axis: Axis) -> int:
    return sum(u.bytes for u in schedule.collectives if u.kind == kind and _over(u, axis))


def _exposed(schedule: Schedule, kind: str, axis: Axis) -> float:
    return sum(u.exposed_s for u in schedule.collectives if u.kind == kind and _over(u, axis))
