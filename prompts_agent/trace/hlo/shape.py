"""Array and tuple shapes of HLO: type, dims, memory space, bytes; from protos and from text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

__all__ = ["HOST_MEMORY_SPACE", "Shape", "parse_shape", "shape_from_proto"]

HOST_MEMORY_SPACE = 5
"""XLA's `S(5)`: memory of the host, on TPU and GPU alike."""

# xla_data.proto, PrimitiveType: number → name.
_ELEMENT_TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64",
    10: "f16", 11: "f32", 12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16",
    17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4", 22: "u4",
    23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3",
    29: "f8e3m4", 30: "s1", 31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu", 34: "buffer",
}  # fmt: skip
_BITS = {"pred": 8, "c64": 64, "c128": 128, "bf16": 16}


def _bits(dtype: str) -> int:
    """Bits of an element as HBM holds it; sub-byte types are packed; 0 for tokens and the like."""
    if dtype in _BITS:
        return _BITS[dtype]
    width = re.match(r"[fsu](\d+)", dtype)
    return int(width[1]) if width else 0


@dataclass(frozen=True, slots=True)
class Shape:
    """An array (`dtype`, `dims`) or, where `parts` is not empty, a tuple of shapes."""

    dtype: str
    dims: tuple[int, ...] = ()
    memory_space: int = 0
    parts: tuple[Shape, ...] = ()

    @property
    def bytes(self) -> int:
        """Of all arrays in it, without padding."""
        if self.dtype == "tuple":
            return sum(part.bytes for part in self.parts)
        return -(-prod(self.dims) * _bits(self.dtype) // 8)

    @property
    def elements(self) -> int:
        """Of all arrays in it."""
        if self.dtype == "tuple":
            return sum(part.elements for part in self.parts)
        return prod(self.dims)

    @property
    def in_host_memory(self) -> bool:
        """Whether any part of it lies in the host's memory."""
        if self.dtype == "tuple":
            return any(part.in_host_memory for part in self.parts)
        return self.memory_space == HOST_MEMORY_SPACE

    def __str__(self) -> str:
        if self.dtype == "tuple":
            return f"({', '.join(map(str, self.parts))})"
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


def shape_from_proto(proto: Any) -> Shape:
    """The record of an `xla.ShapeProto`."""
    dtype = _ELEMENT_TYPES.get(proto.element_type, f"type{proto.element_type}")
    if dtype == "tuple":
        return Shape("tuple", parts=tuple(shape_from_proto(part) for part in proto.tuple_shapes))
    return Shape(dtype, tuple(proto.dimensions), proto.layout.memory_space)


_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([0-9,<=?\s]*)\](\{[^{}]*\})?")
_SPACE = re.compile(r"S\((\d+)\)")
_GAP = re.compile(r"(?:\s|,|/\*.*?\*/)*")


def parse_shape(text: str, position: int = 0) -> tuple[Shape, int] | None:
    """The shape that starts at `position` and where it ends, or None where none starts there.

    `f32[5,1024]{1,0:T(8,128)S(5)}` is in host memory; `[<=8]` is a dynamic dim, taken at its bound.
    """
    if text.startswith("(", position):
        return _parse_tuple(text, position)
    array = _ARRAY.match(text, position)
    if array is None:
        return None
    dims = tuple(int(dim.strip(" <=?") or 0) for dim in array[2].split(",") if dim.strip())
    space = _SPACE.search(array[3] or "")
    return Shape(array[1], dims, int(space[1]) if space else 0), array.end()


def _parse_tuple(text: str, position: int) -> tuple[Shape, int] | None:
    parts: list[Shape] = []
    position += 1
    while True:
        gap = _GAP.match(text, position)
        position = gap.end() if gap else position
        if text.startswith(")", position):
            return Shape("tuple", parts=tuple(parts)), position + 1
        part = parse_shape(text, position)
        if part is None:
            return None
        parts.append(part[0])
        position = part[1]
