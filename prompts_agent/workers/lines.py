"""Lines: a file of JSON lines, each on disk before `append` returns, whole after any kill."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Lines", "sync_directory"]

_BLOCK = 1 << 16


class Lines:
    """An append-only file with one writer. A last line that a kill cut is no line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def read(self) -> Iterator[bytes]:
        """The whole lines, without their ends; none where there is no file."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line[:-1]

    def append(self, line: bytes) -> None:
        """Add a line and wait until it is on disk. Raises `OSError`; then nothing is added."""
        descriptor = self._opened()
        end = os.lseek(descriptor, 0, os.SEEK_END)
        data = memoryview(line + b"\n")
        try:
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, end)
            raise

    def close(self) -> None:
        """Close the file; `append` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self) -> int:
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            _drop_cut_line(self._descriptor)
            sync_directory(self.path.parent)
        return self._descriptor


def _drop_cut_line(descriptor: int) -> None:
    """Two lines must never share one: what a kill cut is taken away before the next is written."""
    end = size = os.lseek(descriptor, 0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        end = start + found + 1 if found >= 0 else start
        if found >= 0:
            break
    if end != size:
        os.ftruncate(descriptor, end)


def sync_directory(directory: Path) -> None:
    """Wait until a new name in `directory` is on disk, where the file system can say so."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems refuse
        return
    finally:
        os.close(descriptor)
