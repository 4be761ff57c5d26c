"""Scheduled: a compiled program with its bodies in the order in which they run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from prompts_agent.errors import DamagedTraceError
from prompts_agent.trace.hlo.program import HloProgram, Instruction
from prompts_agent.trace.hlo.proto import read_hlo_proto
from prompts_agent.trace.hlo.shape import Shape, shape_from_proto
from prompts_agent.trace.xspace.messages import hlo_proto

__all__ = ["Scheduled", "read_scheduled"]

_CYCLES = re.compile(r'"estimated_cycles"\s*:\s*"?(\d+)')
_ALGORITHM = re.compile(r'"collective_algorithm_config"\s*:\s*(\{)')
_WORD = re.compile(r"\s*([A-Z0-9]\w*[a-z]\w*)")
_LOW = 2**32 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """`program` has its bodies in schedule order and its loops with their trip counts.

    `cycles` is the compiler's own estimate of an op, there only after code generation; `algorithm`
    what it chose for a collective, where it says so; `opaque_flops` the FLOPs of matmuls that the
    instruction itself does not size: library calls and convolutions with a padded window.
    """

    program: HloProgram
    cycles: dict[str, int]
    algorithm: dict[str, str]
    opaque_flops: dict[str, float]
    unknown_loops: tuple[str, ...] = ()
    """Loops whose count is not in the program; they are taken to run once."""

    @property
    def counted(self) -> bool:
        """The compiler has counted the cycles of its ops. A few have a count before code
        generation; they are not a step's time.
        """
        fusions = [n for n, i in self.program.instructions.items() if i.opcode == "fusion"]
        return 2 * sum(name in self.cycles for name in fusions) > len(fusions) > 0

    def with_id(self, program_id: int) -> HloProgram:
        """The program under another id."""
        return replace(self.program, program_id=program_id)


def read_scheduled(data: bytes) -> Scheduled:
    """Decodes a serialized `xla.HloProto` of a scheduled module.

    Raises `DamagedTraceError` where it is none.
    """
    program = read_hlo_proto(data)
    module = hlo_proto().FromString(data).hlo_module
    if not module.schedule.sequences:
        raise DamagedTraceError(
            f"the HLO program {program.name}",
            rule="it has no schedule, so nothing says in which order it runs",
            cure="Dump it after optimizations: --xla_dump_to=DIR --xla_dump_hlo_as_proto.",
        )
    reading = _Reading(module, program)
    return Scheduled(
        program=replace(program, computations=reading.bodies()),
        cycles=reading.cycles,
        algorithm=reading.algorithm,
        opaque_flops=reading.opaque_flops,
        unknown_loops=tuple(reading.unknown_loops),
    )


_RAGGED = re.compile(r"ragged-dot-(?!metadata)")
"""How libtpu names the kernels that it makes of jax's ragged products."""


class _Reading:
    """One pass over the module's message."""

    def __init__(self, module: Any, program: HloProgram) -> None:
        self._program = program
        self._computations = {c.id: c for c in module.computations}
        self._order = {
            key: list(sequence.instruction_ids)
            for key, sequence in module.schedule.sequences.items()
        }
        self.cycles: dict[str, int] = {}
        self.algorithm: dict[str, str] = {}
        self.opaque_flops: dict[str, float] = {}
        self.unknown_loops: list[str] = []

    def bodies(self) -> dict[str, tuple[Instruction, ...]]:
        return {c.name: self._body(c) for c in self._computations.values()}

    def _body(self, computation: Any) -> tuple[Instruction, ...]:
        known = self._program.instructions
        by_id = {i.id: i for i in computation.instructions}
        for proto in computation.instructions:
            self._note(proto, by_id)
        protos = _in_order(by_id, self._order.get(computation.id))
        return tuple(self._with_trips(known[proto.name], proto) for proto in protos)

    def _note(self, proto: Any, by_id: dict[int, Any]) -> None:
        config = proto.backend_config.decode("utf-8", "replace") if proto.backend_config else ""
        cycles = _CYCLES.search(config)
        if cycles:
            self.cycles[proto.name] = int(cycles[1])
        algorithm = _ALGORITHM.search(config)
        if algorithm:
            self.algorithm[proto.name] = _algorithm(config, algorithm.start(1))
        operands = [shape_from_proto(by_id[k].shape) for k in proto.operand_ids if k in by_id]
        if proto.opcode == "convolution" and self._program.instructions[proto.name].dot is None:
            batch = _window_batch(proto.window.dimensions)
            self.opaque_flops[proto.name] = _product_flops(proto, operands, batch)
        elif proto.opcode == "custom-call" and _RAGGED.match(proto.name):
            self.opaque_flops[proto.name] = _ragged_flops(proto, operands)
        elif proto.opcode == "custom-call" and "gemm" in proto.custom_call_target:
            self.opaque_flops[proto.name] = _product_flops(proto, operands, _gemm_batch(config))

    def _with_trips(self, instruction: Instruction, proto: Any) -> Instruction:
        if instruction.opcode != "while" or instruction.trip_count is not None:
            return instruction
        trips = max(map(self._counts_to, proto.called_computation_ids), default=None)
        if not trips:
            self.unknown_loops.append(instruction.name)
            return instruction
        return replace(instruction, trip_count=trips)

    def _counts_to(self, key: int) -> int:
        """The largest integer that a small computation compares with; 0 where it compares none.

        A loop's condition is `counter < n`, plain or fused; its body is not taken for one.
        """
        computation = self._computations.get(key)
        if computation is None or not _returns_truth(computation):
            return 0
        found = [max(_integers(i.literal), default=0) for i in computation.instructions]
        inner = [self._counts_to(k) for i in computation.instructions for k in _calls(i)]
        return max([*found, *inner], default=0)


def _in_order(by_id: dict[int, Any], order: list[int] | None) -> Iterable[Any]:
    """Instructions as they run; ids in a schedule may carry the computation's in their high half.

    Bodies without a sequence (fusions) keep the order of their message.
    """
    if order is None:
        return by_id.values()
    low = {key & _LOW: proto for key, proto in by_id.items()}
    return [by_id.get(key) or low[key & _LOW] for key in order]


def _returns_truth(computation: Any) -> bool:
    shape: Shape = shape_from_proto(computation.program_shape.result)
    return shape.dtype == "pred" and not shape.dims


def _calls(proto: Any) -> list[int]:
    return list(proto.called_computation_ids)


def _integers(literal: Any) -> list[int]:
    return [*literal.s32s, *literal.s64s, *literal.u32s, *literal.u64s]


def _algorithm(config: str, start: int) -> str:
    """Emitter and strategy: the names that the strings of the JSON object at `start` begin with."""
    try:
        value, _ = json.JSONDecoder().raw_decode(config, start)
    except ValueError:
        return ""
    words = [_WORD.match(text) for text in value.values() if isinstance(text, str)]
    return " ".join(dict.fromkeys(word[1] for word in words if word))


def _window_batch(dimensions: Any) -> int:
    """A batch dim of a dot becomes a window dim as long as it that moves by its whole length."""
    return math.prod(d.size for d in dimensions if max(d.stride, d.base_dilation) > 1)


def _gemm_batch(config: str) -> int:
    """1 unless the call is batched; the batch is in its shapes' leading dims."""
    return 0 if re.search(r'"lhs_batch_dimensions"\s*:\s*\[\s*"', config) else 1


def _ragged_flops(proto: Any, operands: list[Shape]) -> float:
    """Of libtpu's grouped matmul, rows (m k) × weights (e k n) → (m n), or a gradient of it.

    Every row meets one group's matrix: 2 × m × k × n, however many groups there are.
    """
    result = shape_from_proto(proto.shape)
    wide = [shape for shape in operands if shape.dtype.startswith(("bf", "f"))]
    groups = max((s.dims[0] for s in (*wide, result) if len(s.dims) > 2), default=1)
    return _product_flops(proto, wide, groups)


def _product_flops(proto: Any, operands: list[Shape], batch: int) -> float:
    """2 × batch × m × n × k from the sizes alone: (bmk × bkn × bmn) is (b m n k)² × b."""
    if len(operands) < 2:
        return 0.0
    result = shape_from_proto(proto.shape)
    result = result.parts[0] if result.parts else result
    batch = batch or (operands[0].dims[0] if operands[0].dims else 1)
    sizes = operands[0].elements * operands[1].elements * result.elements
    return 2.0 * math.sqrt(sizes / max(batch, 1))
