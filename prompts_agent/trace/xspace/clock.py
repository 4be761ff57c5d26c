"""Picoseconds since the start of the capture, for every line of a file."""

from __future__ import annotations

from dataclasses import dataclass

from prompts_agent.trace.xspace.file import LineIndex, XSpaceFile

__all__ = ["Clock"]

# Lines normally count from the start of the capture. A line that counts from 1970 instead would
# overflow 64 bits of picoseconds: 10^17 ns are 1973, and three years of capture.
_EPOCH_NS = 10**17


@dataclass(frozen=True, slots=True)
class Clock:
    """`zero_ns` is what lines that count from 1970 count from."""

    zero_ns: int = 0

    @classmethod
    def of(cls, file: XSpaceFile) -> Clock:
        """The earliest line that counts from 1970, if there is one."""
        absolute = [x.timestamp_ns for _, x in file.lines() if x.timestamp_ns > _EPOCH_NS]
        return cls(min(absolute, default=0))

    def start_ps(self, line: LineIndex) -> int:
        """Start of a line, to which its events' offsets are added."""
        base = self.zero_ns if line.timestamp_ns > _EPOCH_NS else 0
        return (line.timestamp_ns - base) * 1000
