"""Grows a trace: repeats the events of every line, each copy later in time than the one before.

    python benchmarks/grow_trace.py small.xplane.pb large.xplane.pb 500

The last argument is the size to reach in MB. Writes as it goes: memory stays at the source's size.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from prompts_agent.trace.xspace.messages import message_class

_PLANES_TAG, _LINES_TAG, _HOSTNAMES_TAG = b"\x0a", b"\x1a", b"\x22"
_GAP_PS = 10**9


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _delimited(tag: bytes, body_length: int) -> bytes:
    return tag + _varint(body_length)


def _span_ps(space: Any) -> int:
    ends = (e.offset_ps + e.duration_ps for p in space.planes for x in p.lines for e in x.events)
    return max(ends, default=0) + _GAP_PS


def _copies(line: Any, count: int, span_ps: int) -> Iterator[bytes]:
    """The line's events, `count` times; alters `line`."""
    for _ in range(count):
        yield line.SerializeToString()
        for event in line.events:
            event.offset_ps += span_ps


def _events_only(line: Any) -> Any:
    bare = type(line)()
    bare.events.extend(line.events)
    return bare


def _without(message: Any, repeated: str) -> bytes:
    bare = type(message)()
    bare.CopyFrom(message)
    bare.ClearField(repeated)
    return bare.SerializeToString()


def _grown_size(line: Any, count: int, span_ps: int) -> int:
    return sum(map(len, _copies(_events_only(line), count, span_ps)))


def _write_plane(plane: Any, count: int, span_ps: int, out: IO[bytes]) -> None:
    head = _without(plane, "lines")
    line_heads = [_without(line, "events") for line in plane.lines]
    sizes = [
        len(line_head) + _grown_size(line, count, span_ps)
        for line, line_head in zip(plane.lines, line_heads, strict=True)
    ]
    total = len(head) + sum(len(_delimited(_LINES_TAG, size)) + size for size in sizes)
    out.write(_delimited(_PLANES_TAG, total))
    for line, line_head, size in zip(plane.lines, line_heads, sizes, strict=True):
        out.write(_delimited(_LINES_TAG, size))
        out.write(line_head)
        for events in _copies(_events_only(line), count, span_ps):
            out.write(events)
    out.write(head)


def grow(source: Path, target: Path, size_mb: float) -> tuple[int, int]:
    """Writes the grown trace; returns the number of copies and of events."""
    space = message_class("prompts_agent.xspace.XSpace").FromString(source.read_bytes())
    lines = [line for plane in space.planes for line in plane.lines]
    line_bytes = sum(line.ByteSize() for line in lines)
    count = max(1, round(size_mb * 1e6 / max(1, line_bytes)))
    span_ps = _span_ps(space)
    with target.open("wb") as out:
        for plane in space.planes:
            _write_plane(plane, count, span_ps, out)
        for name in space.hostnames:
            out.write(_delimited(_HOSTNAMES_TAG, len(name.encode())) + name.encode())
    return count, count * sum(len(line.events) for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("size_mb", type=float)
    arguments = parser.parse_args()
    copies, events = grow(arguments.source, arguments.target, arguments.size_mb)
    size = arguments.target.stat().st_size
    print(f"{copies} copies, {events} events, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
