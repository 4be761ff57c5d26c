"""HloProto bytes to an HloProgram."""

from __future__ import annotations

import re
from typing import Any

from prompts_agent.errors import DamagedTraceError
from prompts_agent.trace.hlo.dots import DotDims, convolution_dims, dot_dims
from prompts_agent.trace.hlo.groups import groups_from_proto
from prompts_agent.trace.hlo.program import HloProgram, Instruction, Parameter, ProgramMemory
from prompts_agent.trace.hlo.shape import HOST_MEMORY_SPACE, Shape, shape_from_proto
from prompts_agent.trace.hlo.sharding import Sharding, sharding_from_proto
from prompts_agent.trace.xspace.messages import hlo_proto

__all__ = ["read_hlo_proto"]

_HBM_COLOR = 0


def read_hlo_proto(data: bytes, program_id: int | None = None) -> HloProgram:
    """Decodes a serialized `xla.HloProto`.

    `program_id` is what the trace calls the program; without it the module's own id is taken.
    Raises `DamagedTraceError` where the bytes are no HloProto.
    """
    from google.protobuf.message import DecodeError

    try:
        proto = hlo_proto().FromString(data)
        return _program(proto, program_id)
    except (DecodeError, ValueError, IndexError) as error:
        raise DamagedTraceError(
            f"an HLO program of {len(data)} bytes",
            rule=f"it is not a readable HloProto ({error})",
            cure="Capture the trace again.",
        ) from error


def _program(proto: Any, program_id: int | None) -> HloProgram:
    module = proto.hlo_module
    names = {c.id: c.name for c in module.computations}
    computations = {c.name: _instructions(c, names) for c in module.computations}
    entry = names.get(module.entry_computation_id, module.entry_computation_name)
    assignment = module.device_assignment
    devices = assignment.replica_count * assignment.computation_count
    parameters = _parameters(module, computations.get(entry, ()))
    return HloProgram(
        name=module.name,
        program_id=(module.id if program_id is None else program_id) % 2**64,
        entry=entry,
        computations=computations,
        device_count=devices or None,
        parameters=parameters,
        memory=_memory(proto.buffer_assignment) if proto.HasField("buffer_assignment") else None,
    )


def _instructions(computation: Any, names: dict[int, str]) -> tuple[Instruction, ...]:
    by_id = {i.id: i for i in computation.instructions}
    return tuple(_instruction(i, computation.name, by_id, names) for i in computation.instructions)


def _instruction(
    proto: Any, computation: str, by_id: dict[int, Any], names: dict[int, str]
) -> Instruction:
    operands = [by_id[k] for k in proto.operand_ids if k in by_id]
    shape = shape_from_proto(proto.shape)
    dot = None
    if proto.opcode in ("dot", "convolution"):
        dot = _matmul(proto, [shape_from_proto(o.shape) for o in operands[:2]], shape)
    attributes = proto.frontend_attributes.map
    return Instruction(
        name=proto.name,
        opcode=proto.opcode,
        shape=shape,
        operands=tuple(o.name for o in operands),
        computation=computation,
        calls=tuple(names[k] for k in proto.called_computation_ids if k in names),
        op_name=proto.metadata.op_name or None,
        channel_id=proto.channel_id or None,
        is_host_transfer=proto.is_host_transfer or shape.in_host_memory,
        groups=groups_from_proto(proto),
        pairs=tuple((pair.source, pair.target) for pair in proto.source_target_pairs),
        sharding=sharding_from_proto(proto.sharding) if proto.HasField("sharding") else None,
        dot=dot,
        custom_call_target=proto.custom_call_target or None,
        parameter_number=proto.parameter_number if proto.opcode == "parameter" else None,
        trip_count=_trip_count(proto.backend_config) if proto.opcode == "while" else None,
        across_slices=any("megascale" in key for key in attributes),
    )


_TRIP_COUNT = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d+)')


def _trip_count(backend_config: bytes) -> int | None:
    found = _TRIP_COUNT.search(backend_config.decode("utf-8", "replace"))
    return int(found[1]) if found else None


def _matmul(proto: Any, operands: list[Shape], result: Shape) -> DotDims | None:
    if len(operands) < 2:
        return None
    if proto.opcode == "convolution":
        if any(map(_moves_edges, proto.window.dimensions)):
            return None
        numbers = proto.convolution_dimension_numbers
        output_feature = numbers.kernel_output_feature_dimension
        return convolution_dims(operands[0], operands[1], result, output_feature)
    numbers = proto.dot_dimension_numbers
    return dot_dims(
        operands[0],
        operands[1],
        (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions),
        (numbers.lhs_batch_dimensions, numbers.rhs_batch_dimensions),
    )


def _moves_edges(window: Any) -> bool:
    padded = window.padding_low or window.padding_high
    return bool(padded) or max(window.window_dilation, window.base_dilation) > 1


def _parameters(module: Any, entry: tuple[Instruction, ...]) -> tuple[Parameter, ...]:
    donated = {alias.parameter_number for alias in module.input_output_alias.entries}
    given = list(module.host_program_shape.parameter_names)
    shardings = [sharding_from_proto(s) for s in module.spmd_parameters_shardings]
    found = []
    for instruction in entry:
        number = instruction.parameter_number
        if number is None:
            continue
        fallback: Sharding | None = shardings[number] if number < len(shardings) else None
        named = instruction.op_name or (given[number] if number < len(given) else instruction.name)
        found.append(
            Parameter(
                number=number,
                name=named.replace("\\'", "'"),
                shape=instruction.shape,
                sharding=instruction.sharding or fallback,
                donated=number in donated,
            )
        )
    return tuple(sorted(found, key=lambda p: p.number))


def _memory(proto: Any) -> ProgramMemory:
    kept = [a for a in proto.buffer_allocations if not a.is_thread_local]
    hbm = [a for a in kept if a.color == _HBM_COLOR]
    parameters = sum(a.size for a in hbm if a.is_entry_computation_parameter)
    output = sum(a.size for a in hbm if a.maybe_live_out and not a.is_entry_computation_parameter)
    total = sum(a.size for a in hbm)
    constant = sum(a.size for a in hbm if a.is_constant)
    return ProgramMemory(
        hbm_bytes=total,
        host_bytes=sum(a.size for a in kept if a.color == HOST_MEMORY_SPACE),
        parameter_bytes=parameters,
        temporary_bytes=total - parameters - output - constant,
        output_bytes=output,
    )
