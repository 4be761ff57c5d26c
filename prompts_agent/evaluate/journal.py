"""Journal: one JSON line a finished record, so that a killed evaluation goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from prompts_agent.record import Record
from prompts_agent.workers.lines import Lines

__all__ = ["Journal"]

R = TypeVar("R", bound=Record)


class Journal(Generic[R]):
    """A file of an output directory, or nothing where there is no directory.

    A record is found by its key, which covers the workload, the calibration and the code. Whatever
    is not a whole line (a kill) or not such a record (another version) is made again.
    """

    def __init__(self, directory: Path | None, name: str, kind: type[R]) -> None:
        self.path = None if directory is None else directory / name
        self._lines = None if self.path is None else Lines(self.path)
        self._kind = kind

    def records(self) -> dict[str, R]:
        """Every record that can be read, by key."""
        found: dict[str, R] = {}
        for line in () if self._lines is None else self._lines.read():
            try:
                entry = json.loads(line)
                text = json.dumps(entry["record"])
                found[str(entry["key"])] = self._kind.model_validate_json(text)
            except (ValueError, KeyError, TypeError, ValidationError):
                continue
        return found

    def append(self, key: str, record: R) -> None:
        """Add one line; it is on disk when this returns."""
        if self._lines is None:
            return
        entry = {"key": key, "record": json.loads(record.model_dump_json())}
        # Not sorted: methods keep the order in which tables show them.
        self._lines.append(json.dumps(entry).encode())
