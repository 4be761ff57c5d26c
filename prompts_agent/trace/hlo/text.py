"""HLO as text: one instruction, as a trace names its events, or a whole dump."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from prompts_agent.errors import WrongFormatError
from prompts_agent.trace.hlo.dots import DotDims, convolution_dims, dot_dims
from prompts_agent.trace.hlo.groups import DeviceGroups, pair_groups, parse_groups, parse_pairs
from prompts_agent.trace.hlo.program import HloProgram, Instruction, Parameter
from prompts_agent.trace.hlo.shape import Shape, parse_shape
from prompts_agent.trace.hlo.sharding import parse_sharding

__all__ = ["operand_shapes", "parse_instruction", "read_hlo_text"]

_HEAD = re.compile(r"\s*(?:ROOT\s+)?%?([\w.\-]+)\s*=\s*")
_OPCODE = re.compile(r"\s*([a-z][a-z0-9\-]*)\(")
_ATTRIBUTE = re.compile(r",?\s*([A-Za-z_]\w*)=")
_OPERAND = re.compile(r"%([\w.\-]+)\s*$")
_TRIP_COUNT = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d+)')
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_CALLS = ("calls", "to_apply", "body", "condition", "branch_computations", "called_computations")


def parse_instruction(
    text: str, computation: str = "", shapes: Mapping[str, Shape] | None = None
) -> Instruction | None:
    """The instruction that a line says, None where the line says none.

    A matmul is sized where its operands carry their shapes, as they do in event names, or where
    `shapes` knows the operands.
    """
    found = _split(text)
    if found is None:
        return None
    name, shape, opcode, operands, attributes = found
    groups, pairs = _groups(attributes)
    names = [match[1] for match in map(_OPERAND.search, operands) if match]
    is_parameter = opcode == "parameter"
    op_name = _OP_NAME.search(attributes.get("metadata", ""))
    trip_count = _TRIP_COUNT.search(attributes.get("backend_config", ""))
    return Instruction(
        name=name,
        opcode=opcode,
        shape=shape,
        operands=tuple(names),
        computation=computation,
        calls=tuple(_called(attributes)),
        op_name=op_name[1].replace("\\'", "'").replace('\\"', '"') if op_name else None,
        channel_id=_integer(attributes.get("channel_id")),
        is_host_transfer=attributes.get("is_host_transfer") == "true"
        or shape.in_host_memory
        or any("S(5)" in operand for operand in operands),
        groups=groups,
        pairs=pairs,
        sharding=parse_sharding(attributes["sharding"]) if "sharding" in attributes else None,
        dot=_matmul(opcode, attributes, operand_shapes(operands, shapes or {}), shape),
        custom_call_target=attributes.get("custom_call_target", "").strip('"') or None,
        parameter_number=_integer(operands[0]) if is_parameter and operands else None,
        trip_count=int(trip_count[1]) if trip_count and opcode == "while" else None,
        across_slices="megascale" in attributes.get("frontend_attributes", ""),
    )


def _split(text: str) -> tuple[str, Shape, str, list[str], dict[str, str]] | None:
    head = _HEAD.match(text)
    if head is None:
        return None
    shape = parse_shape(text, head.end())
    if shape is None:
        return None
    opcode = _OPCODE.match(text, shape[1])
    if opcode is None:
        return None
    end = _closing(text, opcode.end() - 1)
    operands = list(_top_level(text[opcode.end() : end]))
    return head[1], shape[0], opcode[1], operands, _attributes(text, end + 1)


_BRACKETS = {"(": ")", "{": "}", "[": "]"}
_INTERESTING = re.compile(r'[(){}\[\],"]')


def _closing(text: str, opening: int) -> int:
    """Index of the bracket that closes the one at `opening`; the text's end where it is cut off."""
    depth, position = 0, opening
    while True:
        mark = _INTERESTING.search(text, position)
        if mark is None:
            return len(text)
        position = mark.end()
        if mark[0] == '"':
            position = _after_quote(text, position)
        elif mark[0] in "({[":
            depth += 1
        elif mark[0] in ")}]":
            depth -= 1
            if depth == 0:
                return mark.start()


def _after_quote(text: str, position: int) -> int:
    while position < len(text) and text[position] != '"':
        position += 2 if text[position] == "\\" else 1
    return position + 1


def _top_level(text: str) -> Iterator[str]:
    """Parts between commas that are inside no bracket and no quotes."""
    depth = start = position = 0
    while mark := _INTERESTING.search(text, position):
        position = mark.end()
        if mark[0] == '"':
            position = _after_quote(text, position)
        elif mark[0] in "({[":
            depth += 1
        elif mark[0] in ")}]":
            depth -= 1
        elif depth == 0:
            yield text[start : mark.start()].strip()
            start = position
    if text[start:].strip():
        yield text[start:].strip()


def _attributes(text: str, position: int) -> dict[str, str]:
    parts: dict[str, str] = {}
    last = ""
    for part in _top_level(text[position:].lstrip(", ")):
        key = _ATTRIBUTE.match(part)
        # A mesh's device order stands between its sizes and its axes: it is no attribute.
        if key and not (key[1] == "device_ids" and last == "replica_groups"):
            last = key[1]
            parts[last] = part[key.end() :]
        elif last:
            parts[last] += f",{part}"
    return parts


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdigit() else None


def _called(attributes: dict[str, str]) -> Iterator[str]:
    for key in _CALLS:
        for name in attributes.get(key, "").strip("{}").split(","):
            if name.strip():
                yield name.strip().lstrip("%")


def _groups(
    attributes: dict[str, str],
) -> tuple[DeviceGroups | None, tuple[tuple[int, int], ...]]:
    if "source_target_pairs" in attributes:
        pairs = parse_pairs(attributes["source_target_pairs"])
        return DeviceGroups(pair_groups(pairs)), pairs
    if "replica_groups" in attributes:
        return parse_groups(attributes["replica_groups"]), ()
    return None, ()


def operand_shapes(operands: Iterable[str], known: Mapping[str, Shape]) -> list[Shape]:
    """Shapes that operands carry (`bf16[8,16]{1,0} %x`), or that are known by their names."""
    found = []
    for operand in operands:
        carried = parse_shape(operand)
        name = _OPERAND.search(operand)
        shape = carried[0] if carried else known.get(name[1]) if name else None
        if shape is not None:
            found.append(shape)
    return found


def _dims(attributes: dict[str, str], key: str) -> list[int]:
    return [int(dim) for dim in attributes.get(key, "{}").strip("{}").split(",") if dim.strip()]


_DIM_LABELS = re.compile(r"\w+_(\w+)->\w+")


def _matmul(
    opcode: str, attributes: dict[str, str], operands: list[Shape], result: Shape
) -> DotDims | None:
    if opcode not in ("dot", "convolution") or len(operands) < 2:
        return None
    if opcode == "dot":
        sides = ("lhs", "rhs")
        contracting = [_dims(attributes, f"{side}_contracting_dims") for side in sides]
        batch = [_dims(attributes, f"{side}_batch_dims") for side in sides]
        return dot_dims(
            operands[0], operands[1], (contracting[0], contracting[1]), (batch[0], batch[1])
        )
    labels = _DIM_LABELS.match(attributes.get("dim_labels", ""))
    window = attributes.get("window", "")
    if labels is None or "o" not in labels[1] or "pad=" in window or "dilate=" in window:
        return None
    return convolution_dims(operands[0], operands[1], result, labels[1].index("o"))


# ---- whole dumps

_MODULE = re.compile(r"HloModule\s+([\w.\-]+)")
_COMPUTATION = re.compile(r"^(ENTRY\s+)?%?([\w.\-]+)\s*(?:\(.*\)\s*->.*)?\{\s*$")
_ALIAS = re.compile(r"\{[\d,\s]*\}:\s*\((\d+),")
_COUNT = re.compile(r"(num_partitions|replica_count)=(\d+)")


def read_hlo_text(text: str, program_id: int = 0) -> HloProgram:
    """Reads a dump that XLA wrote as text (`--xla_dump_hlo_as_text`).

    Raises `WrongFormatError` where the text holds no module or no entry computation.
    """
    head = _MODULE.match(text.lstrip())
    lines = iter(text.splitlines())
    header = next((line for line in lines if line.startswith("HloModule")), "")
    computations, entry = _computations(lines)
    if head is None or entry is None:
        raise WrongFormatError(
            repr(text[:40]),
            rule="an HLO dump begins with HloModule and has an ENTRY computation",
            cure="Dump it with XLA_FLAGS=--xla_dump_to=DIR --xla_dump_hlo_as_text.",
        )
    donated = {int(number) for number in _ALIAS.findall(header)}
    return HloProgram(
        name=head[1],
        program_id=program_id,
        entry=entry,
        computations={name: tuple(body) for name, body in computations.items()},
        device_count=_device_count(header, computations),
        parameters=_parameters(computations[entry], donated),
    )


def _computations(lines: Iterator[str]) -> tuple[dict[str, list[Instruction]], str | None]:
    computations: dict[str, list[Instruction]] = {}
    entry = current = None
    shapes: dict[str, Shape] = {}
    for line in lines:
        if not line.startswith(" "):
            opened = _COMPUTATION.match(line)
            if opened:
                current = opened[2]
                computations[current] = []
                entry = current if opened[1] else entry
        elif current is not None:
            instruction = parse_instruction(line, current, shapes)
            if instruction is not None:
                shapes[instruction.name] = instruction.shape
                computations[current].append(instruction)
    return computations, entry


def _device_count(header: str, computations: dict[str, list[Instruction]]) -> int | None:
    stated = {key: int(value) for key, value in _COUNT.findall(header)}
    if stated:
        return stated.get("num_partitions", 1) * stated.get("replica_count", 1)
    groups = [i.groups.groups for body in computations.values() for i in body if i.groups]
    return max((max(map(max, g)) + 1 for g in groups if g), default=None)


def _parameters(entry: list[Instruction], donated: set[int]) -> tuple[Parameter, ...]:
    found = [
        Parameter(
            number=i.parameter_number,
            name=i.op_name or i.name,
            shape=i.shape,
            sharding=i.sharding,
            donated=i.parameter_number in donated,
        )
        for i in entry
        if i.parameter_number is not None
    ]
    return tuple(sorted(found, key=lambda p: p.number))
