"""Ops of jax's JSON: HLO text in `long_name` on a TPU, kernel names on a GPU."""

from __future__ import annotations

from dataclasses import replace

from prompts_agent.trace.capture import Op
from prompts_agent.trace.events import Span, as_number
from prompts_agent.trace.hlo.collectives import collective_kind, payload_bytes, split_opcode
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.xspace.ops import kernel_op, tpu_op

__all__ = ["long_name", "stream_op", "xla_op"]


def long_name(span: Span) -> str | None:
    """The event's HLO text."""
    return text_of(span, "long_name")


def xla_op(span: Span, program_id: int | None, program: HloProgram | None) -> Op:
    """An event of the op line. `program` is put together from the texts of all its events."""
    stats = {
        "program_id": program_id,
        "hlo_category": text_of(span, "hlo_category"),
        "flops": as_number(span.args.get("model_flops")),
        "bytes_accessed": as_number(span.args.get("bytes_accessed")),
        "tf_op": text_of(span, "tf_op"),
    }
    text = long_name(span)
    has_name = text is not None and " = " in text
    op = tpu_op(text or span.name, "" if has_name else span.name, stats, program)
    if collective_kind(op.opcode) == "reduce-scatter" and split_opcode(op.opcode)[1] is None:
        return _with_operand(op, program)
    return op


def _with_operand(op: Op, program: HloProgram | None) -> Op:
    """A reduce-scatter's operand is `group` results, and may come from outside the trace."""
    instruction = program.instructions.get(op.name) if program else None
    if instruction is None or op.group_size is None:
        return op
    operand = payload_bytes(instruction, []) * op.group_size
    return replace(op, collective_bytes=max(operand, op.collective_bytes or 0) or None)


def stream_op(span: Span) -> Op:
    """An event of a GPU's stream. Kernels in command buffers lack `hlo_op`."""
    program = as_number(span.args.get("program_id"))
    return kernel_op(
        span.name,
        text_of(span, "hlo_op"),
        text_of(span, "tf_op") or text_of(span, "name"),
        int(program) if program is not None else None,
        None,
    )


def text_of(span: Span, key: str) -> str | None:
    """An argument that is text, None where it is missing, empty or something else."""
    value = span.args.get(key)
    return value if isinstance(value, str) and value else None
