"""A lazy XSpace: an index of planes and lines; nothing is decoded until it is asked for.

Serialized order inside a plane is id, name, lines, event names, stat names, stats. So of a file
that is cut off, complete planes are whole, and the cut plane has lines but no names for them.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prompts_agent.errors import DamagedTraceError, EmptyTraceError
from prompts_agent.trace.xspace.messages import xline, xplane
from prompts_agent.trace.xspace.wire import BYTES, Field, WireError, fields

__all__ = ["LineIndex", "PlaneIndex", "XSpaceFile", "readable"]

_PLANES, _ERRORS, _WARNINGS, _HOSTNAMES = 1, 2, 3, 4  # XSpace
_PLANE_NAME, _LINES, _EVENT_METADATA = 2, 3, 4  # XPlane
_LINE_EVENTS = 4  # XLine
_TEXT_SAMPLE_BYTES = 1 << 20
_REPLACEMENT = b"\xef\xbf\xbd"  # U+FFFD in UTF-8: what a text-mode copy puts for each odd byte


@dataclass(frozen=True, slots=True)
class LineIndex:
    """A line's head, and where its events lie: bytes [events, end) of the file."""

    name: str
    line_id: int
    timestamp_ns: int
    events: int
    end: int
    complete: bool = True


@dataclass(frozen=True, slots=True)
class PlaneIndex:
    """A plane's name and lines; `spans` are the bytes of everything but the lines."""

    name: str
    lines: tuple[LineIndex, ...]
    spans: tuple[tuple[int, int], ...]
    start: int
    end: int
    complete: bool = True
    has_names: bool = True
    """False where the file ends before the names of the plane's events."""

    def line(self, name: str) -> LineIndex | None:
        """The first line of that name."""
        return next((line for line in self.lines if line.name == name), None)


@dataclass
class XSpaceFile:
    """An indexed trace. Use as a context manager: it holds a file open."""

    planes: list[PlaneIndex] = field(default_factory=list)
    hostnames: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)
    size: int = 0
    _data: Any = b""
    _file: Any = None

    @classmethod
    def open(cls, source: Path | bytes, *, label: str | None = None) -> Self:
        """Indexes a file or bytes.

        Raises `EmptyTraceError` for no bytes or no planes, `DamagedTraceError` where the bytes
        are no XSpace, were copied in text mode, or are two different XSpaces in one file. A file
        that is cut off is salvaged, with a caveat.
        """
        label = label or (str(source) if isinstance(source, Path) else "the trace")
        opened = cls()
        try:
            opened._map(source)
            with readable(label):
                opened._index(label)
        except BaseException:
            opened.close()
            raise
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file."""
        if isinstance(self._data, mmap.mmap):
            self._data.close()
        if self._file is not None:
            self._file.close()
        self._data, self._file = b"", None

    def read(self, start: int, end: int) -> bytes:
        """A copy of the bytes [start, end).

        Read, not mapped: pages of a mapped file would count as this process's memory.
        """
        if self._file is None:
            return bytes(self._data[start:end])
        self._file.seek(start)
        return bytes(self._file.read(end - start))

    def plane_head(self, plane: PlaneIndex) -> Any:
        """The XPlane message without its lines: names, stats."""
        message = xplane()()
        message.ParseFromString(b"".join(self.read(start, end) for start, end in plane.spans))
        return message

    # ---- index

    def _map(self, source: Path | bytes) -> None:
        if isinstance(source, bytes):
            self._data, self.size = source, len(source)
            return
        self._file = source.open("rb")
        self.size = source.stat().st_size
        if self.size:
            self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def _index(self, label: str) -> None:
        if not self.size:
            raise EmptyTraceError(
                f"{label} has no bytes",
                rule="a trace holds at least one plane",
                cure="Capture it again, or copy it again: the copy may have failed.",
            )
        self._refuse_text_copy(label)
        for found in fields(self._data, 0, self.size):
            self._take(found)
        if not self.planes:
            if self.caveats:
                raise _damaged(label, "it ends before the first plane is whole")
            raise EmptyTraceError(
                f"{label} holds no planes",
                rule="a trace holds at least one plane",
                cure="Capture a few steps while the device works.",
            )
        self._refuse_two_traces(label)

    def _take(self, found: Field) -> None:
        if not found.complete:
            kept = f"{found.start / self.size:.0%}" if self.planes else "nothing"
            self.caveats.append(
                f"the file is cut off at byte {self.size}: what lies before is used "
                f"({len(self.planes)} whole planes, {kept} of the bytes)"
            )
        if found.number == _PLANES and found.wire == BYTES:
            plane = self._plane(found)
            if plane is not None:
                self.planes.append(plane)
        elif found.complete and found.wire == BYTES and found.number in (2, 3, 4):
            text = self.read(found.value, found.end).decode("utf-8", "replace")
            {_ERRORS: self.errors, _WARNINGS: self.warnings, _HOSTNAMES: self.hostnames}[
                found.number
            ].append(text)
        elif found.complete:
            raise WireError(found.start, f"field {found.number} of an XSpace")

    def _plane(self, plane: Field) -> PlaneIndex | None:
        name, lines, has_names = "", [], plane.complete
        spans: list[tuple[int, int]] = []
        for found in fields(self._data, plane.value, plane.end):
            if found.number == _LINES and found.wire == BYTES:
                lines.append(self._line(found))
            elif found.complete:
                if found.number == _PLANE_NAME and found.wire == BYTES:
                    name = self.read(found.value, found.end).decode()
                has_names = has_names or found.number > _EVENT_METADATA
                # Runs of neighbours are one span: a host plane has thousands of names.
                if spans and spans[-1][1] == found.start:
                    spans[-1] = (spans[-1][0], found.end)
                else:
                    spans.append((found.start, found.end))
        if not plane.complete and not lines and not spans:
            return None
        return PlaneIndex(
            name, tuple(lines), tuple(spans), plane.value, plane.end, plane.complete, has_names
        )

    def _line(self, line: Field) -> LineIndex:
        head_end = line.end
        for found in fields(self._data, line.value, line.end):
            if found.number == _LINE_EVENTS:
                head_end = found.start
                break
            if not found.complete:
                head_end = found.start
        head = xline()()
        head.ParseFromString(self.read(line.value, head_end))
        return LineIndex(head.name, head.id, head.timestamp_ns, head_end, line.end, line.complete)

    # ---- damage

    def _refuse_text_copy(self, label: str) -> None:
        """A real trace is no UTF-8 text: its lengths above 127 already break it."""
        sample = self.read(0, min(self.size, _TEXT_SAMPLE_BYTES))
        if _REPLACEMENT in sample and _is_text(sample):
            raise DamagedTraceError(
                f"{label} holds {sample.count(_REPLACEMENT)} replacement characters (EF BF BD)",
                rule="it was copied in text mode, which destroys every byte above 127",
                cure="It cannot be repaired: copy the original again, as a binary file.",
            )

    def _refuse_two_traces(self, label: str) -> None:
        """Two XSpaces in one file are a valid XSpace with every plane twice."""
        first: dict[str, PlaneIndex] = {}
        kept: list[PlaneIndex] = []
        for plane in self.planes:
            twin = first.setdefault(plane.name, plane)
            if twin is plane or not plane.name.startswith(("/device:", "/host:CPU")):
                kept.append(plane)
            elif not self._same_bytes(twin, plane):
                raise DamagedTraceError(
                    f"{label} holds two different planes {plane.name!r}",
                    rule="a trace of one host has each plane once: two traces were put together",
                    cure="Give the original files, one per host.",
                )
        if len(kept) < len(self.planes):
            self.caveats.append("the file holds the same trace twice; the second copy is ignored")
        self.planes = kept

    def _same_bytes(self, one: PlaneIndex, other: PlaneIndex) -> bool:
        if one.end - one.start != other.end - other.start:
            return False
        step = 1 << 22
        return all(
            self.read(one.start + at, min(one.start + at + step, one.end))
            == self.read(other.start + at, min(other.start + at + step, other.end))
            for at in range(0, one.end - one.start, step)
        )

    def lines(self) -> Iterator[tuple[PlaneIndex, LineIndex]]:
        """Every line with its plane."""
        return ((plane, line) for plane in self.planes for line in plane.lines)


def _is_text(sample: bytes) -> bool:
    # The sample may end inside a character of up to four bytes.
    for cut in range(4):
        try:
            sample[: len(sample) - cut].decode()
        except UnicodeDecodeError:
            continue
        return True
    return False


@contextmanager
def readable(label: str) -> Iterator[None]:
    """Turns what decoders raise on damaged bytes into `DamagedTraceError`."""
    from google.protobuf.message import DecodeError

    try:
        yield
    except (DecodeError, WireError, ValueError, IndexError, KeyError, OverflowError) as error:
        raise _damaged(label, str(error) or type(error).__name__) from error


def _damaged(label: str, why: str) -> DamagedTraceError:
    return DamagedTraceError(
        label,
        rule=f"it is no readable XSpace: {why}",
        cure="Copy it again as a binary file, or capture it again.",
    )
