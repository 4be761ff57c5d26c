"""Store: the output directory. One writer at a time, files that appear whole or not at all.

journal.jsonl           a line a row (journal-03-of-64.jsonl for a shard)
reports/1.2/ab/ab….json a report, by schema and by the SHA-256 of its bytes
tables/*.parquet        derived from both, and rebuilt where they are older
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from prompts_agent.agents.report import SCHEMA_VERSION
from prompts_agent.batch.item import Shard
from prompts_agent.errors import InputError, OutputError
from prompts_agent.workers.lines import sync_directory

__all__ = ["Store", "report_path", "require_batch", "unwritable"]


def report_path(directory: Path, digest: str) -> Path:
    """Where the report of that name lies, of whatever schema; that of today's for a new one."""
    for schema in sorted((directory / "reports").glob("*"), reverse=True):
        path = schema / digest[:2] / f"{digest}.json"
        if path.exists():
            return path
    return directory / "reports" / SCHEMA_VERSION / digest[:2] / f"{digest}.json"


def require_batch(directory: Path) -> None:
    """Raises `InputError` for a directory that holds no batch."""
    if not any(directory.glob("journal*.jsonl")):
        raise InputError(
            str(directory),
            rule="it holds no batch: there is no journal.jsonl"
            if directory.is_dir()
            else "there is no such directory",
            cure="Give the directory that `prompts batch SOURCE -o DIR` wrote.",
        )


def unwritable(path: Path, error: OSError) -> OutputError:
    """The error of a place that cannot be written to, or is full."""
    return OutputError(
        str(path),
        # Not its own words: some libraries wrap the system's in theirs.
        rule=os.strerror(error.errno) if error.errno else str(error) or type(error).__name__,
        cure="Free some space and give the same command again: what is done is kept."
        if error.errno in (errno.ENOSPC, errno.EDQUOT)
        else "Write somewhere else.",
    )


class Store:
    """An output directory while this process writes to it. A context manager.

    Raises `OutputError` where it cannot be made or written, and where another process has it.
    """

    def __init__(self, directory: Path, shard: Shard | None = None) -> None:
        self.directory = directory
        suffix = shard.suffix if shard is not None else ""
        self.scratch = directory / f"scratch{suffix}"
        """For what tasks leave behind; emptied by whoever has the lock."""
        self._lock_path = directory / f"lock{suffix}"
        self._lock = -1

    def __enter__(self) -> Self:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise unwritable(self.directory, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._lock, 200, 0).decode("utf-8", "replace").strip()
            os.close(self._lock)
            raise OutputError(
                f"{self.directory} is being written by another batch ({holder or 'unknown'})",
                rule="one batch at a time writes to an output directory",
                cure="Wait for it, end it, or give another directory; --shard i/n lets several "
                "share one.",
            ) from error
        try:
            self._take()
        except OSError as error:
            os.close(self._lock)
            raise unwritable(self.directory, error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        # The file stays: a lock on a file that another process unlinks guards nothing.
        os.close(self._lock)

    def _take(self) -> None:
        holder = f"process {os.getpid()} on {socket.gethostname()}".encode()
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, holder, 0)
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()

    def write_report(self, digest: str, report: bytes) -> None:
        """Put a report where its name says, on disk before this returns. Raises `OSError`."""
        path = self.directory / "reports" / SCHEMA_VERSION / digest[:2] / f"{digest}.json"
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.scratch / digest  # a kill leaves it where the next batch cleans up
        try:
            with temporary.open("wb") as file:
                file.write(report)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync_directory(path.parent)


def write_json(path: Path, value: object) -> None:
    """A small file, whole or not at all. Raises `OSError`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)
