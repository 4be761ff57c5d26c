"""Journal: one JSON line per finished job, appended and flushed, so that a killed batch resumes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from prompts_agent.errors import InputError
from prompts_agent.record import Record

__all__ = ["Entry", "Journal"]


class Entry(Record):
    """How one job ended. `exit_code` is the process's; None where it was killed for its time."""

    path: str
    status: Literal["done", "bad_input", "not_diagnosable", "timed_out", "crashed"]
    exit_code: int | None
    wall_s: float
    report: str | None = None
    """The report's file name, within the output directory."""
    error: str | None = None


class Journal:
    """The file `journal.jsonl` of an output directory."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "journal.jsonl"

    def entries(self) -> Iterator[Entry]:
        """Every finished job. A last line that was cut by a kill is left out: that job runs again.

        Raises `InputError` where any other line is not an entry.
        """
        if not self.path.exists():
            return
        lines = self.path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            if not line:
                continue
            try:
                yield Entry.model_validate_json(line)
            except ValidationError as error:
                if number == len(lines):
                    return
                raise InputError(
                    f"{self.path}, line {number}",
                    rule="each line of a journal is one finished job",
                    cure="Give another output directory, or remove that line.",
                ) from error

    def append(self, entry: Entry) -> None:
        """Adds one line. A cut last line is first ended, so that two entries never share a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            if file.tell() > 0:
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    self._drop_cut_line()
            file.write(json.dumps(entry.model_dump(), sort_keys=True).encode() + b"\n")

    def _drop_cut_line(self) -> None:
        whole = self.path.read_bytes()
        with self.path.open("r+b") as file:
            file.truncate(whole.rfind(b"\n") + 1)
