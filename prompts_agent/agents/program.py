"""The traced program as shapes, for inferring model, phase, batch and mesh from it."""

from __future__ import annotations

import re

from prompts_agent.agents.unnamed import told_axes
from prompts_agent.hardware.catalog import chip_names
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import Profile, ProgramParameter
from prompts_agent.workload.axis_names import axis_named
from prompts_agent.workload.program import AxisInUse, ProgramShapes, TensorShape

__all__ = ["axes_of", "program_shapes"]

# optax, flax and PyTorch name their state so.
_OPTIMIZER = re.compile(r"opt_?state|optimizer|exp_avg|\bmu\b|\bnu\b|momentum", re.IGNORECASE)
_CACHE = re.compile(r"cache", re.IGNORECASE)
_INPUT = re.compile(r"tokens|labels|targets|inputs|input_ids", re.IGNORECASE)
# jax names the ops of a backward pass so (`jvp` is the forward pass of a differentiated function).
_BACKWARD = re.compile(r"transpose\(|backward|\bbwd\b|rematted_computation", re.IGNORECASE)


def program_shapes(profile: Profile) -> ProgramShapes:
    """What the main program's parameters and ops say; None where they say nothing."""
    tensors = [(p, _shape(p)) for p in profile.parameters]
    inputs = tuple(t for _, t in tensors if _is_input(t))
    weights = tuple(t for _, t in tensors if t not in inputs)
    mesh = tuple(AxisInUse(name=axis.name, size=axis.size) for axis in profile.mesh)
    told = told_axes(mesh, weights, inputs)
    optimizer = any(_OPTIMIZER.search(p.name) for p, _ in tensors)
    known = profile.device_kind in chip_names() and not profile.structure_only
    return ProgramShapes(
        name=profile.step.program if profile.step is not None else _main_program(profile),
        parameters=weights,
        inputs=inputs,
        mesh=tuple(AxisInUse(name=told.get(a.name, a.name), size=a.size) for a in mesh),
        has_backward=_has_backward(profile, optimizer),
        has_optimizer_state=optimizer or None,
        device_kind=profile.device_kind if known else None,
        devices=profile.devices_in_job or profile.devices_in_trace or None,
    )


def _is_input(tensor: TensorShape) -> bool:
    """Integers of one or two dims; of three (microbatches) where the name says tokens: stacked
    weights of 8 bits have three too.
    """
    dims = len(tensor.local_shape)
    return tensor.is_integer and (
        dims in (1, 2) or (dims == 3 and bool(_INPUT.search(tensor.name)))
    )


def _main_program(profile: Profile) -> str:
    return profile.programs[0].name if profile.programs else "the traced program"


def _shape(parameter: ProgramParameter) -> TensorShape:
    return TensorShape(
        name=parameter.name,
        dtype=parameter.dtype,
        local_shape=parameter.local_shape,
        global_shape=parameter.global_shape,
        tiles=parameter.tiles,
        replication=parameter.replication,
    )


def _has_backward(profile: Profile, optimizer: bool) -> bool | None:
    """True or False only where names tell: of ops, of optimizer state, of a KV cache."""
    names = [op.tf_op for op in profile.top_ops if op.tf_op]
    if optimizer or any(_BACKWARD.search(name) for name in names):
        return True
    cached = any(_CACHE.search(parameter.name) for parameter in profile.parameters)
    # A backward pass is two thirds of a training step, so it is among the largest ops if anywhere.
    return False if cached or names else None


def axes_of(
    profile: Profile, shapes: ProgramShapes, degrees: dict[Axis, int] | None
) -> dict[str, Axis]:
    """The trace's axis names → ours; `degrees` tell whether a data axis cuts weights.

    `shapes` are the profile's own, so its mesh has the same axes, unnamed ones by their meaning.
    """
    pairs = zip(profile.mesh, shapes.mesh, strict=True)
    named = {axis.name: axis_named(meant.name) for axis, meant in pairs}
    axes = {name: axis for name, axis in named.items() if axis is not None}
    if degrees is not None and Axis.DATA not in degrees and Axis.FSDP in degrees:
        axes = {n: Axis.FSDP if axis is Axis.DATA else axis for n, axis in axes.items()}
    return axes
