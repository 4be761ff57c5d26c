"""Ops of jax's JSON: HLO text in `long_name` on a TPU, kernel names on a GPU."""

from __future__ import annotations

from prompts_agent.trace.capture import Op
from prompts_agent.trace.events import Span, as_number
from prompts_agent.trace.hlo.collectives import collective_kind, payload_bytes
from prompts_agent.trace.hlo.program import Instruction
from prompts_agent.trace.hlo.text import parse_instruction
from prompts_agent.trace.kernels import collective_opcode, memcpy_opcode, short_name

__all__ = ["kernel_op", "xla_op"]


def xla_op(span: Span, program: int | None) -> Op:
    """An event of the op line. Its HLO text tells opcode, groups and size."""
    text = span.args.get("long_name")
    text = text if isinstance(text, str) else None
    category = span.args.get("hlo_category")
    category = category if isinstance(category, str) else None
    instruction = _instruction(text)
    opcode = instruction.opcode if instruction else (category or span.name.split(".")[0])
    groups = instruction.groups if instruction else None
    return Op(
        name=span.name,
        opcode=opcode,
        program_id=program,
        category=category,
        text=text,
        flops=_flops(span, opcode),
        bytes=as_number(span.args.get("bytes_accessed")),
        is_host_transfer=_touches_host(instruction, opcode, text),
        collective_bytes=_moved_bytes(instruction) if instruction else None,
        group_size=groups.size if groups else None,
        groups=groups.groups or None if groups else None,
        axis="+".join(groups.axes) if groups and groups.axes else None,
        tf_op=_string(span.args.get("tf_op")),
    )


def kernel_op(span: Span) -> Op:
    """An event of a GPU's stream. Kernels in command buffers lack `hlo_op`."""
    lowered = span.name.lower()
    text = _string(span.args.get("name")) or span.name
    program = as_number(span.args.get("program_id"))
    if lowered.startswith("memcpy"):
        opcode = memcpy_opcode(span.name)
    elif lowered.startswith("memset"):
        opcode = "memset"
    else:
        opcode = collective_opcode(span.name) or "kernel"
    return Op(
        name=_string(span.args.get("hlo_op")) or short_name(span.name),
        opcode=opcode,
        program_id=int(program) if program is not None else None,
        category=_string(span.args.get("hlo_category")),
        text=text,
        is_host_transfer=opcode in {"memcpy-h2d", "memcpy-d2h"},
        tf_op=_string(span.args.get("tf_op")),
    )


def _instruction(text: str | None) -> Instruction | None:
    try:
        return parse_instruction(text) if text else None
    except (ValueError, IndexError):  # text that the converter cut short
        return None


def _moved_bytes(instruction: Instruction) -> int | None:
    """The larger of operand and result of a collective; None for other ops.

    The result is the larger one, except of a reduce-scatter, whose operand is `group` results.
    """
    kind = collective_kind(instruction.opcode)
    if kind is None:
        return None
    size = payload_bytes(instruction, [])
    if kind == "reduce-scatter":
        group = instruction.groups.size if instruction.groups else None
        return size * group if group and size else None
    return size or None


def _flops(span: Span, opcode: str) -> float | None:
    """The trace's count; its zero for a custom call means that it did not look inside."""
    flops = as_number(span.args.get("model_flops"))
    return None if flops == 0 and opcode in {"custom-call", "async-start"} else flops


def _touches_host(instruction: Instruction | None, opcode: str, text: str | None) -> bool:
    if instruction is not None and instruction.is_host_transfer:
        return True
    return opcode in {"infeed", "outfeed"} or (text is not None and "S(5)" in text)


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
