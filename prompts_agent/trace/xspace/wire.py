"""The protobuf wire format, as far as an index of a file needs it: tags, varints, field spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

__all__ = ["ByteString", "Field", "WireError", "fields", "varint"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


class ByteString(Protocol):
    """bytes, mmap or memoryview."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> int: ...


class WireError(ValueError):
    """Bytes at `position` are no protobuf field."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"{why} at byte {position}")
        self.position = position


class Field(NamedTuple):
    """A field: its bytes are [start, end), its value [value, end).

    `complete` is False where the data ends inside it; `end` is then the end of the data.
    """

    number: int
    wire: int
    start: int
    value: int
    end: int
    complete: bool


def varint(data: ByteString, position: int, end: int) -> tuple[int, int]:
    """The varint at `position` and where it ends. Raises IndexError where the data ends in it."""
    result = shift = 0
    start = position
    while True:
        if position >= end:
            raise IndexError(position)
        byte = data[position]
        position += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, position
        shift += 7
        if position - start >= _MAX_VARINT_BYTES:
            raise WireError(start, "a varint of more than ten bytes")


def fields(data: ByteString, start: int, end: int) -> Iterator[Field]:
    """Fields of the message in [start, end). The last may be incomplete.

    Raises `WireError` at a tag with a wire type that the format does not have.
    """
    while start < end:
        try:
            tag, value = varint(data, start, end)
            number, wire = tag >> 3, tag & 7
            if number == 0:
                raise WireError(start, "a field with number 0")
            if wire == VARINT:
                _, stop = varint(data, value, end)
            elif wire == BYTES:
                length, value = varint(data, value, end)
                stop = value + length
            elif wire == FIXED64:
                stop = value + 8
            elif wire == FIXED32:
                stop = value + 4
            else:
                raise WireError(start, f"wire type {wire}")
        except IndexError:
            yield Field(0, -1, start, end, end, complete=False)
            return
        yield Field(number, wire, start, value, min(stop, end), stop <= end)
        start = stop
