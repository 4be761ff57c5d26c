"""What programs alone tell, without a run: collectives, matmuls, parameters."""

from __future__ import annotations

from collections.abc import Callable

from prompts_agent.trace.capture import Op
from prompts_agent.trace.hlo.collectives import collective_of
from prompts_agent.trace.hlo.groups import DeviceGroups
from prompts_agent.trace.hlo.mesh import Mesh
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.hlo.sharding import Sharding
from prompts_agent.trace.measure.collectives import CollectiveSums
from prompts_agent.trace.profile import MeshAxisUse, ProgramParameter

__all__ = [
    "axis_finder",
    "largest_program",
    "mesh_axes",
    "parameters",
    "program_flops",
    "static_sums",
]


def largest_program(programs: list[HloProgram]) -> HloProgram | None:
    """The one that most likely is the job: of most devices, then of most instructions."""
    return max(
        programs,
        key=lambda p: (p.device_count or 0, len(p.instructions), p.name, p.program_id),
        default=None,
    )


def static_sums(program: HloProgram) -> list[CollectiveSums]:
    """Collectives of one execution; those in loops count with the trip count that is known."""
    runs, wrapped = program.runs_per_step(), _wrapped(program)
    sums = []
    for instruction in program.instructions.values():
        found = collective_of(program, instruction)
        times = runs.get(instruction.computation, 0.0)
        if found is None or found.role in ("done", "update") or not times:
            continue
        if instruction.computation in wrapped:
            continue  # a wrapper and what it wraps are one collective
        groups = found.groups
        op = Op(
            name=instruction.name,
            opcode=found.kind,
            program_id=program.program_id,
            collective_bytes=found.bytes or None,
            group_size=groups.size if groups else None,
            groups=groups.groups if groups else None,
        )
        sums.append(CollectiveSums(op, count=round(times)))
    return sums


def _wrapped(program: HloProgram) -> set[str]:
    return {
        name
        for i in program.instructions.values()
        if i.opcode in ("async-start", "fusion") and collective_of(program, i) is not None
        for name in i.calls
    }


def program_flops(program: HloProgram) -> float | None:
    """Matmul FLOPs of one execution on one device; None where a custom call may hide some."""
    if any(
        i.opcode == "custom-call" and _may_multiply(i.custom_call_target)
        for i in program.instructions.values()
    ):
        return None
    runs = program.runs_per_step()
    total = sum(
        i.dot.flops * runs.get(i.computation, 0.0)
        for i in program.instructions.values()
        if i.dot is not None
    )
    return float(total) or None


def _may_multiply(target: str | None) -> bool:
    harmless = (
        "Sharding",
        "SPMD",
        "AllocateBuffer",
        "AssumeGatherIndicesInBound",
        "TopK",
        "xla.sdy",
    )
    return not (target or "").startswith(harmless)


def mesh_axes(mesh: Mesh | None) -> tuple[tuple[MeshAxisUse, ...], str | None]:
    """Axes of a mesh and where they come from."""
    if mesh is None:
        return (), None
    axes = tuple(MeshAxisUse(name=name, size=size) for name, size in mesh.axes)
    if mesh.named:
        return axes, "axis names in the program's collectives and shardings"
    return axes, "inferred from parameter shardings and replica groups: outermost axis first"


def axis_finder(mesh: Mesh | None, programs: dict[int, HloProgram]) -> Callable[[Op], str | None]:
    """The axis that an op's groups span on a mesh.

    The op's own word counts first, then the groups of its instruction, then those of the event.
    """

    def find(op: Op) -> str | None:
        if op.axis is not None:
            return op.axis
        if mesh is None:
            return None
        program = programs.get(op.program_id) if op.program_id is not None else None
        instruction = program.instructions.get(op.name) if program else None
        found = collective_of(program, instruction) if program and instruction else None
        if found is not None and found.groups is not None:
            return mesh.axis_of(found.groups)
        return mesh.axis_of(DeviceGroups(op.groups)) if op.groups else None

    return find


def parameters(program: HloProgram | None) -> tuple[ProgramParameter, ...]:
    """Parameters of a program, largest first."""
    if program is None:
        return ()
    found = []
    for p in program.parameters:
        if p.shape.dtype == "tuple":
            continue
        rank, sharding = len(p.shape.dims), p.sharding
        found.append(
            ProgramParameter(
                name=p.name,
                dtype=p.shape.dtype,
                local_shape=p.shape.dims,
                global_shape=sharding.global_dims(p.shape.dims) if sharding else None,
                tiles=sharding.tiles_of(rank) if sharding else None,
                replication=_copies(sharding, program.device_count),
            )
        )
    sizes = {p.name: p.shape.bytes for p in program.parameters}
    return tuple(sorted(found, key=lambda p: (-sizes.get(p.name, 0), p.name)))


def _copies(sharding: Sharding | None, device_count: int | None) -> int | None:
    """Devices that hold each shard; a replicated parameter lies on all of them."""
    if sharding is None:
        return None
    if sharding.replication is None and not sharding.tiles:
        return device_count
    return sharding.replication
