"""Touched: the HBM bytes that an op reads and writes, from the shapes alone.

What lies in a TPU's vector memory or in the host's costs no HBM; a slice of an operand counts as
the slice, an update in place as what is written.
"""

from __future__ import annotations

from functools import cache

from prompts_agent.trace.hlo.program import HloProgram, Instruction
from prompts_agent.trace.hlo.shape import Shape

__all__ = ["Touched"]

_VIEWS = {"bitcast", "get-tuple-element", "tuple", "opt-barrier", "parameter"}
_PARTS = {"dynamic-slice", "slice", "gather"}
_DEPTH = 8


class Touched:
    """Counts for the instructions of one program."""

    def __init__(self, program: HloProgram) -> None:
        self._program = program
        self._users: dict[str, dict[str, list[tuple[Instruction, int]]]] = {}
        self.bytes_of = cache(self._bytes_of)

    def _bytes_of(self, name: str) -> int:
        instruction = self._program.instructions[name]
        body = self._fused(instruction)
        if body is not None:
            return self._of_body(body)
        operands = [self._program.instructions[n] for n in instruction.operands]
        if instruction.opcode in _PARTS:
            return 2 * _in_hbm(instruction.shape)
        if instruction.opcode == "dynamic-update-slice" and len(operands) > 1:
            return 2 * _in_hbm(operands[1].shape)
        return _in_hbm(instruction.shape) + sum(_in_hbm(o.shape) for o in operands)

    def _fused(self, instruction: Instruction) -> tuple[Instruction, ...] | None:
        if instruction.opcode not in ("fusion", "call") or not instruction.calls:
            return None
        return self._program.computations.get(instruction.calls[0])

    def _of_body(self, body: tuple[Instruction, ...]) -> int:
        read = sum(self._read(body, i.name, 0) for i in body if i.opcode == "parameter")
        return read + self._written(body)

    def _written(self, body: tuple[Instruction, ...]) -> int:
        known = {i.name: i for i in body}
        root = self._root(body)
        if root is None:
            return 0
        results = [known[n] for n in root.operands if n in known] if root.opcode == "tuple" else []
        return sum(map(self._result_bytes, results or [root]))

    def _result_bytes(self, result: Instruction) -> int:
        if result.opcode == "dynamic-update-slice" and len(result.operands) > 1:
            return _in_hbm(self._program.instructions[result.operands[1]].shape)
        return _in_hbm(result.shape)

    def _root(self, body: tuple[Instruction, ...]) -> Instruction | None:
        """What no other instruction of the body uses; the last of them."""
        used = {name for i in body for name in i.operands}
        return next((i for i in reversed(body) if i.name not in used), None)

    def _read(self, body: tuple[Instruction, ...], name: str, depth: int) -> int:
        """Bytes of value `name` that its users in `body` read, at most all of it."""
        whole = _in_hbm(self._program.instructions[name].shape)
        if whole == 0 or depth > _DEPTH:
            return whole
        read = 0
        for user, position in self._users_of(body).get(name, []):
            read += self._read_by(body, user, position, whole, depth)
            if read >= whole:
                return whole
        return read

    def _read_by(
        self, body: tuple[Instruction, ...], user: Instruction, at: int, whole: int, depth: int
    ) -> int:
        if user.opcode in _PARTS:
            return min(whole, _in_hbm(user.shape) if at == 0 else whole)
        if user.opcode == "dynamic-update-slice" and at == 0:
            return 0
        if user.opcode in _VIEWS:
            return min(whole, self._read(body, user.name, depth + 1))
        inner = self._fused(user)
        if inner is None:
            return whole
        parameter = next((i for i in inner if i.parameter_number == at), None)
        return whole if parameter is None else self._read(inner, parameter.name, depth + 1)

    def _users_of(self, body: tuple[Instruction, ...]) -> dict[str, list[tuple[Instruction, int]]]:
        key = body[0].computation
        if key not in self._users:
            found: dict[str, list[tuple[Instruction, int]]] = {}
            for user in body:
                for position, name in enumerate(user.operands):
                    found.setdefault(name, []).append((user, position))
            self._users[key] = found
        return self._users[key]


def _in_hbm(shape: Shape) -> int:
    """Bytes of the parts of a shape that lie in HBM."""
    if shape.dtype == "tuple":
        return sum(map(_in_hbm, shape.parts))
    return shape.bytes if shape.memory_space == 0 else 0
