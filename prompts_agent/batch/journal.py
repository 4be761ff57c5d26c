"""Journal: what a batch has done, a line a row, on disk before the next is begun.

The first line of each run says what was asked, so that nobody goes on with other flags.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from prompts_agent.batch.item import Shard
from prompts_agent.batch.row import Row
from prompts_agent.batch.settings import Settings
from prompts_agent.errors import InputError
from prompts_agent.record import Record
from prompts_agent.workers.lines import Lines

__all__ = ["FORMAT", "Begun", "Journal", "journals_in", "replaces", "rows_in"]

FORMAT = "1.0"
"""Of the journal: a field is added under a new minor version, changed only under a major one."""


class Begun(Record):
    """The head of a run."""

    format: str = FORMAT
    tool_version: str
    settings: Settings
    shard: Shard | None = None
    items: int
    """How many rows the sources of this run have, in this shard."""
    started_at: datetime


class Journal:
    """The file of one batch, or of one shard of it."""

    def __init__(self, directory: Path, shard: Shard | None = None) -> None:
        suffix = shard.suffix if shard is not None else ""
        self._lines = Lines(directory / f"journal{suffix}.jsonl")
        self.path = self._lines.path

    @classmethod
    def at(cls, path: Path) -> Journal:
        """The journal in that file."""
        journal = cls(path.parent)
        journal._lines = Lines(path)
        journal.path = path
        return journal

    def begin(self, head: Begun) -> None:
        """Add the head of a run."""
        self._lines.append(b'{"begun":' + head.model_dump_json().encode() + b"}")

    def append(self, row: Row) -> None:
        """Add a row; it is on disk when this returns. Raises `OSError`, and then adds nothing."""
        self._lines.append(b'{"row":' + row.model_dump_json().encode() + b"}")

    def entries(self) -> Iterator[Begun | Row]:
        """Heads and rows in the order in which they were written.

        Raises `InputError` for a line that is neither; a last line that was cut is none.
        """
        for number, line in enumerate(self._lines.read(), 1):
            try:
                if line.startswith(b'{"row":'):
                    yield Row.model_validate_json(line[7:-1])
                elif line.startswith(b'{"begun":'):
                    yield Begun.model_validate_json(line[9:-1])
                else:
                    raise ValueError(line[:40])
            except (ValidationError, ValueError) as error:
                raise InputError(
                    f"{self.path}, line {number}: {_why(line)}",
                    rule=f"each line of a journal is a row of format {FORMAT}",
                    cure="Give another output directory, or remove that line: its row is done "
                    "again.",
                ) from error

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


def journals_in(directory: Path) -> list[Journal]:
    """That of a whole batch and those of shards, by name."""
    return [Journal.at(path) for path in sorted(directory.glob("journal*.jsonl"))]


def rows_in(directory: Path) -> dict[str, Row]:
    """The last row of each item, by key, over all journals; done beats failed."""
    found: dict[str, Row] = {}
    for journal in journals_in(directory):
        for entry in journal.entries():
            if isinstance(entry, Row) and replaces(entry, found.get(entry.key)):
                found[entry.key] = entry
    return found


def replaces(row: Row, known: Row | None) -> bool:
    """Whether of two rows of one item `row` counts: the later, but none that failed for one that
    is done.
    """
    if known is None or known.report is None:
        return known is None or row.report is not None or row.finished_at >= known.finished_at
    return row.report is not None and row.finished_at >= known.finished_at


def _why(line: bytes) -> str:
    text = line[:60].decode("utf-8", "replace")
    try:
        json.loads(line)
    except ValueError:
        return f"{text}… is no JSON"
    return f"{text}…"
