"""Ops from event names, their stats and the programs that they come from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from prompts_agent.trace.capture import Op
from prompts_agent.trace.hlo.collectives import (
    Collective,
    collective_kind,
    collective_of,
    fused_role,
    split_opcode,
)
from prompts_agent.trace.hlo.mesh import has_names
from prompts_agent.trace.hlo.program import HloProgram, Instruction
from prompts_agent.trace.hlo.text import parse_instruction
from prompts_agent.trace.kernels import collective_opcode, memcpy_opcode, short_name

__all__ = ["TextPrograms", "kernel_op", "program_key", "tpu_op"]

_NUMBER = re.compile(r"[.\d]+$")
_OPAQUE = {"custom-call", "async-start", "async-done"}
_COPY_KERNEL = re.compile(r"^(memcpy|copy(host|device|peer|h2d|d2h|d2d|p2p))", re.IGNORECASE)


def program_key(value: Any) -> int | None:
    """A program id as traces write it: signed, unsigned or absent."""
    return None if value is None else int(value) % 2**64


class TextPrograms:
    """Programs put together from event names, for those whose HLO the trace does not hold."""

    def __init__(self, known: Mapping[int, HloProgram]) -> None:
        self._known = known
        self._texts: dict[int | None, dict[str, Instruction]] = {}

    def add(self, program_id: int | None, text: str) -> None:
        """Takes the instruction that an event's name says, if the program is not known."""
        if program_id is not None and program_id in self._known:
            return
        try:
            instruction = parse_instruction(text)
        except (ValueError, IndexError):  # a name that the profiler cut short
            return
        if instruction is not None:
            self._texts.setdefault(program_id, {})[instruction.name] = instruction

    def get(self, program_id: int | None) -> HloProgram | None:
        """The program with its HLO, else the one put together."""
        if program_id is not None and program_id in self._known:
            return self._known[program_id]
        texts = self._texts.get(program_id)
        if texts is None:
            return None
        body = {"": tuple(texts.values())}
        return HloProgram(name="", program_id=program_id or 0, entry="", computations=body)


def tpu_op(
    name: str, display_name: str, stats: Mapping[str, Any], program: HloProgram | None
) -> Op:
    """An op of a TPU's op line. `name` is the HLO text, or the bare instruction name."""
    category = _text(stats.get("hlo_category"))
    short = display_name or name.split(" = ", 1)[0].lstrip("%")
    instruction = program.instructions.get(short) if program else None
    collective = collective_of(program, instruction) if program and instruction else None
    opcode = instruction.opcode if instruction else (category or _NUMBER.sub("", short))
    fused = fused_role(short)
    if fused and not collective_kind(opcode):
        opcode = f"{collective.kind if collective else 'all-gather'}-{fused}"
    across_slices = instruction is not None and instruction.across_slices
    touches_host = not across_slices and (
        "S(5)" in name
        or (instruction is not None and instruction.is_host_transfer)
        or split_opcode(opcode)[0] in ("infeed", "outfeed")
    )
    if split_opcode(opcode)[0] in ("send", "recv") and touches_host:
        collective = None
    return Op(
        name=short,
        opcode=_opcode_of(opcode, collective),
        program_id=program_key(stats.get("program_id")),
        category=category,
        text=name if " = " in name else None,
        flops=_count(stats.get("flops"), opcode),
        bytes=_count(stats.get("bytes_accessed"), opcode),
        is_host_transfer=touches_host,
        tf_op=_text(stats.get("tf_op")) or (instruction.op_name if instruction else None),
        **_collective_fields(collective),
    )


def _opcode_of(opcode: str, collective: Collective | None) -> str:
    """A collective's own opcode for wrappers around it, else the opcode as it is."""
    if collective is None or collective_kind(opcode):
        return opcode
    return f"{collective.kind}-{collective.role}" if collective.role else collective.kind


def _collective_fields(collective: Collective | None) -> dict[str, Any]:
    if collective is None:
        return {}
    groups = collective.groups
    named = groups is not None and groups.mesh is not None and has_names(groups.mesh)
    return {
        "collective_bytes": collective.bytes or None,
        "group_size": groups.size if groups else None,
        "groups": (groups.groups or None) if groups else None,
        "axis": "+".join(groups.axes) if named and groups and groups.axes else None,
    }


def _count(value: Any, opcode: str) -> float | None:
    """A cost that the trace counted; its zero for an opaque call means that it did not look."""
    if value is None or (not value and opcode in _OPAQUE):
        return None
    return float(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def kernel_op(
    kernel: str,
    hlo_op: str | None,
    tf_op: str | None,
    program_id: int | None,
    program: HloProgram | None,
) -> Op:
    """A kernel or copy of a GPU stream, or an op of a CPU device (whose kernel is its HLO op)."""
    instruction = program.instructions.get(hlo_op) if program and hlo_op else None
    collective = collective_of(program, instruction) if program and instruction else None
    named = collective_opcode(kernel)
    opcode = instruction.opcode if instruction else (named or "kernel")
    if _COPY_KERNEL.match(kernel):
        opcode, collective = memcpy_opcode(kernel), None
    elif kernel.lower().startswith("memset"):
        opcode = "memset"
    elif collective is None and named and not (instruction and instruction.opcode == "fusion"):
        opcode = named
    flops = program.flops(instruction) if program and instruction else None
    return Op(
        name=hlo_op or short_name(kernel),
        opcode=_opcode_of(opcode, collective),
        program_id=program_id,
        text=kernel,
        # A fusion without a matmul does work that is not counted: unknown, not zero.
        flops=float(flops) if flops else None,
        is_host_transfer=opcode in ("memcpy-h2d", "memcpy-d2h")
        or (instruction is not None and instruction.is_host_transfer),
        tf_op=(instruction.op_name if instruction else None) or tf_op,
        **_collective_fields(collective),
    )
