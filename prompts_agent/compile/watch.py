"""Watch: when a child has said all that is wanted of it."""

from __future__ import annotations

import time
from pathlib import Path

from prompts_agent.compile.assignment import find_file
from prompts_agent.compile.request import Until

__all__ = ["Watch", "assigned"]

_ASSIGNMENT = (
    "after_optimizations-buffer-assignment.txt",
    "after_optimizations-live-range.txt",
)
_LAST = {
    "tpu": "after_optimizations_after_buffer_assignment.txt",
    "gpu": "after_optimizations-memory-usage-report.txt",
}
"""The file of memory assignment that is begun last."""
_SCHEDULE = {
    "tpu": "after_optimizations_after_buffer_assignment.hlo.pb",
    "gpu": "after_optimizations.hlo.pb",
}
"""The last of the program's own files; the buffer assignment in it is written before."""
_STILL_S = 0.2
"""Newer versions write a dump's files side by side, so each must have stopped growing."""


class Watch:
    """Holds once there is a result, or the files of memory assignment are whole."""

    def __init__(self, directory: Path, platform: str, until: Until = Until.MEMORY) -> None:
        self._result = directory / "result.json"
        self._dump = directory / "dump"
        self._endings: tuple[str, ...] = (_LAST[platform], *_ASSIGNMENT)
        if until is Until.SCHEDULE:
            self._endings = (_SCHEDULE[platform], *self._endings)
        self._to_the_end = until is Until.END
        self._sizes: tuple[int, ...] = ()
        self._since_s = 0.0

    def __call__(self) -> bool:
        """Whether the child may be ended."""
        if self._result.exists():
            return True
        if self._to_the_end:
            return False
        sizes = self._seen()
        if not sizes or sizes != self._sizes:
            self._sizes, self._since_s = sizes, time.monotonic()
            return False
        return time.monotonic() - self._since_s >= _STILL_S

    def _seen(self) -> tuple[int, ...]:
        """Sizes of the files; empty while one is missing or empty."""
        found = [find_file(self._dump, ending) for ending in self._endings]
        sizes = tuple(path.stat().st_size for path in found if path is not None)
        return sizes if len(sizes) == len(self._endings) and all(sizes) else ()


def assigned(directory: Path, platform: str) -> bool:
    """Whether the files of memory assignment are there."""
    dump = directory / "dump"
    return all(find_file(dump, ending) for ending in (_LAST[platform], *_ASSIGNMENT))
