"""Which instructions are collectives, what they move, and over which devices."""

from __future__ import annotations

import re
from dataclasses import dataclass

from prompts_agent.trace.hlo.groups import DeviceGroups
from prompts_agent.trace.hlo.program import HloProgram, Instruction
from prompts_agent.trace.hlo.shape import Shape

__all__ = [
    "Collective",
    "collective_kind",
    "collective_of",
    "fused_role",
    "payload_bytes",
    "split_opcode",
]

_KINDS = {
    "all-reduce": "all-reduce",
    "all-gather": "all-gather",
    "reduce-scatter": "reduce-scatter",
    "all-reduce-scatter": "reduce-scatter",
    "all-to-all": "all-to-all",
    "ragged-all-to-all": "all-to-all",
    "collective-permute": "collective-permute",
    "collective-broadcast": "collective-broadcast",
    "send-recv": "send-recv",
    "send": "send-recv",
    "recv": "send-recv",
}
_ROLE = re.compile(r"-(start|done|update)$")


def split_opcode(opcode: str) -> tuple[str, str | None]:
    """`all-gather-done` is ("all-gather", "done"); a synchronous opcode has role None.

    `send` and `recv` have no `-start`: they issue, and `-done` waits.
    """
    role = _ROLE.search(opcode)
    if role:
        return opcode[: role.start()], role[1]
    return opcode, "start" if opcode in ("send", "recv") else None


def collective_kind(opcode: str) -> str | None:
    """The kind that an opcode belongs to, with or without `-start`/`-done`; None if it is none."""
    return _KINDS.get(split_opcode(opcode)[0])


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective as one instruction takes part in it.

    `role` is start, done, or None where it is synchronous.
    """

    kind: str
    role: str | None
    bytes: int
    groups: DeviceGroups | None
    instruction: Instruction
    """The one that holds the groups: the start of a done, the inside of an async wrapper."""


def payload_bytes(instruction: Instruction, operands: list[Shape]) -> int:
    """The larger of operand and result on one device.

    An async start returns a tuple of operands, results and contexts: its result is the second part.
    """
    result = instruction.shape
    if split_opcode(instruction.opcode)[1] == "start" and result.parts:
        nested = len(result.parts) > 1 and instruction.opcode != "all-reduce-start"
        result = result.parts[1] if nested else result
    return max([result.bytes, sum(shape.bytes for shape in operands)])


def _operand_shapes(program: HloProgram, instruction: Instruction) -> list[Shape]:
    known = program.instructions
    return [known[name].shape for name in instruction.operands if name in known]


def collective_of(program: HloProgram, instruction: Instruction) -> Collective | None:
    """What `instruction` does as a collective, None where it does nothing of the sort.

    Follows a `-done` to its start and an `async-start` into its wrapper. A TPU's fusion around a
    reduce-scatter counts as one, and so do the fusions that issue and await a gather under compute;
    the compute in between that carries it on does not.
    """
    opcode = instruction.opcode
    kind = collective_kind(opcode)
    base, role = split_opcode(opcode)
    if role in ("done", "update") and (kind or base == "async"):
        start = program.instructions.get(instruction.operands[0]) if instruction.operands else None
        found = collective_of(program, start) if start is not None else None
        if found is None:
            return None
        return Collective(found.kind, role, found.bytes, found.groups, found.instruction)
    if kind:
        moved = payload_bytes(instruction, _operand_shapes(program, instruction))
        return Collective(kind, role, moved, instruction.groups, instruction)
    if opcode == "async-start":
        return _wrapped(program, instruction, "start")
    if opcode == "fusion":
        return _wrapped(program, instruction, fused_role(instruction.name))
    return None


_ASYNC_FUSION = re.compile(r"^async-collective-(start|done)\b")


def fused_role(name: str) -> str | None:
    """A TPU's fused async collective keeps its role only in its name: start, done, else None."""
    role = _ASYNC_FUSION.match(name)
    return role[1] if role else None


_FUSED = re.compile(r"^(all-reduce-scatter|reduce-scatter|all-reduce|all-gather|all-to-all)[.\d]*$")


def _wrapped(program: HloProgram, outer: Instruction, role: str | None) -> Collective | None:
    inner = next((i for i in program.called(outer) if collective_kind(i.opcode)), None)
    if inner is None:
        return None
    if outer.opcode == "fusion" and role is None and not _FUSED.match(outer.name):
        return None
    kind = _KINDS[split_opcode(inner.opcode)[0]]
    if outer.opcode == "fusion" and "reduce-scatter" in outer.name:
        kind = "reduce-scatter"
    moved = payload_bytes(inner, _operand_shapes(program, inner))
    return Collective(kind, role, moved, inner.groups, inner)
