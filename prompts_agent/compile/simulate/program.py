"""Program: the HloProto of a simulated trace, its collectives named by the layout's axes."""

from __future__ import annotations

from typing import Any

from prompts_agent.trace.hlo.groups import DeviceGroups, groups_from_proto
from prompts_agent.trace.hlo.mesh import Mesh
from prompts_agent.trace.xspace.messages import hlo_proto, message_class

__all__ = ["traced_program"]


def traced_program(data: bytes, mesh: Mesh, program_id: int) -> bytes:
    """The same program under `program_id`, with what no reader of a trace looks at left out.

    The compiler writes groups by axes of its own (`axis_0`); where they are those of the layout's
    mesh they are written by its names, which says the same of the same devices.
    """
    proto = hlo_proto().FromString(data)
    whole = proto.hlo_module
    kept = hlo_proto()()
    kept.buffer_assignment.CopyFrom(proto.buffer_assignment)
    module = kept.hlo_module
    module.name, module.id = whole.name, program_id
    for name in ("entry_computation_name", "entry_computation_id"):
        setattr(module, name, getattr(whole, name))
    for name in ("host_program_shape", "schedule", "input_output_alias", "device_assignment"):
        getattr(module, name).CopyFrom(getattr(whole, name))
    module.computations.extend(whole.computations)
    module.spmd_parameters_shardings.extend(whole.spmd_parameters_shardings)
    # One replica, as many partitions: a compile for absent devices may leave the counts out.
    if not module.device_assignment.computation_count:
        module.device_assignment.replica_count = 1
        module.device_assignment.computation_count = mesh.size
    for computation in module.computations:
        for instruction in computation.instructions:
            _lighten(instruction)
            _name_groups(instruction, mesh)
    return bytes(kept.SerializeToString(deterministic=True))


def _lighten(instruction: Any) -> None:
    """Loops keep their trip counts; files and lines of source go, the op's own name stays."""
    if instruction.opcode != "while":
        instruction.ClearField("backend_config")
    name, kind = instruction.metadata.op_name, instruction.metadata.op_type
    instruction.ClearField("metadata")
    if name or kind:
        instruction.metadata.op_name, instruction.metadata.op_type = name, kind


def _name_groups(instruction: Any, mesh: Mesh) -> None:
    if instruction.source_target_pairs:
        return
    groups = groups_from_proto(instruction)
    axes = _axes(groups, mesh) if groups is not None and groups.groups else None
    if axes is None:
        return
    for name in ("replica_groups", "collective_device_list", "iota_collective_device_list"):
        instruction.ClearField(name)
    named = message_class("prompts_agent.hlo.MeshAxesReplicaGroupListProto")()
    for name, size in mesh.axes:
        named.mesh.axes.add(name=name, size=size)
    names = [name for name, _ in mesh.axes]
    for axis in axes:
        named.axes.add(mesh_axis_index=names.index(axis))
    instruction.mesh_axes_replica_group_list.CopyFrom(named)


def _axes(groups: DeviceGroups, mesh: Mesh) -> list[str] | None:
    """The axes that the groups span whole; None where they cut one."""
    axis = mesh.axis_of(groups)
    if axis is None:
        return None
    names = axis.split("+")
    spanned = 1
    for name, size in mesh.axes:
        spanned *= size if name in names else 1
    return names if spanned == groups.size else None
