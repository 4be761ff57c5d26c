"""Assignment: what XLA's dump says about memory, read from text that has no version of its own.

Two files of a dump are read: the buffer assignment (allocations and the values in them), the live
ranges (when each value lives).
Layouts that a parser does not know give None, never a wrong number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "Allocation",
    "Value",
    "find_file",
    "live_at_peak",
    "live_ranges",
    "need_bytes",
    "read_assignment",
]

_ALLOCATION = re.compile(r"allocation (\d+): size (\d+)(?:, (.*))?")
_VALUE = re.compile(
    r"\s*value: <\d+ (?P<name>[^ ]+?)(?P<index>\{[\d,]*\})?(?: \(phi\))? @\d+> "
    r"\(size=(?P<size>\d+),offset=(?P<offset>\d+)\): (?P<shape>.*)"
)
_PARAMETER = re.compile(r"parameter (\d+)")
_COLOR = re.compile(r"color (\d+)")
_DIMS = re.compile(r"(?P<dtype>[a-z]\w*)\[(?P<dims>[\d,]*)\]")
_RANGE = re.compile(r"\s+(?P<name>\S+\{[\d,]*\}):(?P<first>\d+)-(?P<last>\d+)")


@dataclass(frozen=True, slots=True)
class Value:
    """A value in an allocation. `name` is the instruction's, with the index into its tuple."""

    name: str
    size: int
    offset: int
    dtype: str
    dims: tuple[int, ...]


@dataclass(slots=True)
class Allocation:
    """A stretch of memory. `parameter` is the number of the argument it holds, if it holds one."""

    size: int
    parameter: int | None
    color: int
    thread_local: bool
    temporary: bool
    values: list[Value] = field(default_factory=list)

    @property
    def on_device(self) -> bool:
        """In HBM (color 0). What is thread-local lies in the memory of a SparseCore's program."""
        return self.color == 0 and not self.thread_local


def find_file(directory: Path, ending: str) -> Path | None:
    """The compiled step's file with this ending; the largest where there are several.

    The reference program is `jit_step`; a user's own has the name of its function.
    """
    found = list(directory.glob(f"*{ending}"))
    found = [path for path in found if "jit_step" in path.name] or found
    return max(found, key=lambda path: path.stat().st_size, default=None)


def read_assignment(text: str) -> list[Allocation] | None:
    """The allocations of a buffer assignment; None where the text is none that we know."""
    found: list[Allocation] = []
    for line in text.splitlines():
        match = _ALLOCATION.match(line)
        if match:
            found.append(_allocation(int(match[2]), match[3] or ""))
        elif found and (value := _VALUE.match(line)):
            found[-1].values.append(_value(value))
    return found or None


def _allocation(size: int, words: str) -> Allocation:
    parameter, color = _PARAMETER.search(words), _COLOR.search(words)
    return Allocation(
        size=size,
        parameter=int(parameter[1]) if parameter else None,
        color=int(color[1]) if color else 0,
        thread_local="thread-local" in words,
        temporary="preallocated-temp" in words,
    )


def _value(match: re.Match[str]) -> Value:
    shape = _DIMS.match(match["shape"])
    dims = tuple(int(d) for d in shape["dims"].split(",") if d) if shape else ()
    return Value(
        name=f"{match['name']}{match['index'] or '{}'}",
        size=int(match["size"]),
        offset=int(match["offset"]),
        dtype=shape["dtype"] if shape else "",
        dims=dims,
    )


def need_bytes(allocations: list[Allocation]) -> int:
    """HBM that the program needs on one device: every allocation there is on it."""
    return sum(allocation.size for allocation in allocations if allocation.on_device)


def live_ranges(text: str) -> dict[str, tuple[int, int]] | None:
    """Value → (first, last) instruction of the schedule; None where the text does not say."""
    found = {
        match["name"]: (int(match["first"]), int(match["last"]))
        for match in map(_RANGE.fullmatch, text.splitlines())
        if match is not None
    }
    return found or None


def live_at_peak(allocations: list[Allocation], ranges: dict[str, tuple[int, int]]) -> set[str]:
    """Names of the temporaries that live at the fullest moment: when the most places are taken.

    The file names a peak of its own, but by a sum in which values that share a place (a loop's
    carry, its body's parameter and its result) count several times.
    """
    temporary = [a for a in allocations if a.on_device and a.temporary]
    values = [v for a in temporary for v in a.values if v.name in ranges]
    # What fills memory is large; the thousands of scalars only cost time here.
    least = max((value.size for value in values), default=0) // 256
    large = [value for value in values if value.size >= least]
    moments = sorted({ranges[value.name][0] for value in large})
    fullest = max(
        moments, key=lambda at: _taken([v for v in large if _lives(ranges, v, at)]), default=0
    )
    return {value.name for value in values if _lives(ranges, value, fullest)}


def _lives(ranges: dict[str, tuple[int, int]], value: Value, moment: int) -> bool:
    first, last = ranges[value.name]
    return first <= moment <= last


def _taken(values: list[Value]) -> int:
    """Bytes of the places of `values`, each counted once."""
    taken = reached = 0
    for start, stop in sorted((v.offset, v.offset + v.size) for v in values):
        taken += max(0, stop - max(start, reached))
        reached = max(reached, stop)
    return taken
