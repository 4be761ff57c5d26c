"""Inferring a mesh: the axis that each name of a program's mesh means, told by its weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

from prompts_agent.layout.mesh import Axis
from prompts_agent.model.shape_names import is_optimizer_state, tokens_of
from prompts_agent.workload.axis_names import axis_named
from prompts_agent.workload.program import AxisInUse, ProgramShapes, TensorShape

__all__ = ["InferredMesh", "infer_mesh"]

_ALWAYS_WHOLE = ("replica", "replicas", "replicate", "dp_replicate")
"""Names that say themselves that weights are repeated over the axis."""


@dataclass(frozen=True, slots=True)
class InferredMesh:
    """`degrees` None: it would be a guess, and `missing` says what would settle it."""

    degrees: dict[Axis, int] | None
    assumptions: tuple[str, ...] = ()
    missing: str | None = None


def infer_mesh(shapes: ProgramShapes) -> InferredMesh:
    """Degrees of our axes from the program's own names and from how its weights are cut."""
    used = [axis for axis in shapes.mesh if axis.size > 1]
    if not shapes.mesh:
        if shapes.devices == 1:
            return InferredMesh({})
        return InferredMesh(None, missing="the mesh of the program, which the trace does not name")
    meant = {axis.name: axis_named(axis.name) for axis in used}
    unknown = [name for name, axis in meant.items() if axis is None]
    if unknown:
        return InferredMesh(
            None, missing=f"what the mesh axes {', '.join(unknown)} cut: their names do not say"
        )
    degrees: dict[Axis, int] = {}
    assumptions = []
    for axis in used:
        target = meant[axis.name]
        if target is Axis.DATA and axis.name.lower() not in _ALWAYS_WHOLE:
            target = _data_or_fsdp(axis, shapes, meant)
        if target is None:
            return InferredMesh(
                None,
                missing=f"whether weights are cut over the axis {axis.name}: the program does not "
                "say how its weights are sharded",
            )
        degrees[target] = degrees.get(target, 1) * axis.size
        if target.value != axis.name:
            assumptions.append(
                f"The program's axis {axis.name} is taken as {target}{_why(target)}."
            )
    return InferredMesh(degrees, tuple(assumptions))


def _why(axis: Axis) -> str:
    if axis is Axis.FSDP:
        return ", because weights are cut over it"
    return ", because weights are whole along it" if axis is Axis.DATA else ""


def _data_or_fsdp(
    axis: AxisInUse, shapes: ProgramShapes, meant: dict[str, Axis | None]
) -> Axis | None:
    """Fsdp where the largest weights have more shards than all other axes can explain.

    Mesh data 4 × model 2: weights in 8 shards are cut over both, weights in 2 over model alone.
    """
    ways = _weight_ways(shapes.parameters)
    if ways is None:
        return None
    sizes = {a.name: a.size for a in shapes.mesh}
    # Context repeats weights in some programs and cuts them in others; replicas never cut them.
    others = math.prod(
        size
        for name, size in sizes.items()
        if name != axis.name and meant.get(name) not in (Axis.DATA, None)
    )
    return Axis.FSDP if ways > others else Axis.DATA


def _weight_ways(parameters: tuple[TensorShape, ...]) -> int | None:
    """The commonest number of shards of weight matrices, by elements.

    Norms and biases say nothing, and ZeRO-1 cuts optimizer state where weights are whole.
    """
    elements: dict[int, int] = {}
    for parameter in parameters:
        shape, ways = parameter.shape, parameter.ways
        if "cache" in parameter.name.lower() or is_optimizer_state(tokens_of(parameter.name)):
            continue
        if ways is None or shape is None or len(shape) < 2 or parameter.is_integer:
            continue
        elements[ways] = elements.get(ways, 0) + math.prod(shape)
    return max(elements, key=lambda ways: (elements[ways], ways), default=None)
