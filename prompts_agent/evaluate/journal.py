"""Journal: one JSON line a finished record, so that a killed evaluation goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from prompts_agent.record import Record

__all__ = ["Journal"]

R = TypeVar("R", bound=Record)


class Journal(Generic[R]):
    """A file of an output directory, or nothing where there is no directory.

    A record is found by its key, which covers the workload, the calibration and the code. Whatever
    is not a whole line (a kill) or not such a record (another version) is made again.
    """

    def __init__(self, directory: Path | None, name: str, kind: type[R]) -> None:
        self.path = None if directory is None else directory / name
        self._kind = kind

    def records(self) -> dict[str, R]:
        """Every record that can be read, by key."""
        found: dict[str, R] = {}
        if self.path is None or not self.path.is_file():
            return found
        for line in self.path.read_bytes().split(b"\n"):
            try:
                entry = json.loads(line)
                text = json.dumps(entry["record"])
                found[str(entry["key"])] = self._kind.model_validate_json(text)
            except (ValueError, KeyError, TypeError, ValidationError):
                continue
        return found

    def append(self, key: str, record: R) -> None:
        """Add one line, on a line of its own even after one that was cut."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"key": key, "record": json.loads(record.model_dump_json())}
        with self.path.open("a+b") as file:
            start = b""
            if file.tell() > 0:
                file.seek(-1, 2)
                start = b"" if file.read(1) == b"\n" else b"\n"
            # Not sorted: methods keep the order in which tables show them.
            file.write(start + json.dumps(entry).encode() + b"\n")
