"""Merge: one batch of the journals and reports of several, or of the shards of one."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from prompts_agent.batch.item import Item, Shard
from prompts_agent.batch.journal import Begun, Journal, journals_in, replaces
from prompts_agent.batch.row import Row
from prompts_agent.batch.settings import require_same
from prompts_agent.batch.store import Store, report_path, require_batch, unwritable
from prompts_agent.batch.tables import build_tables
from prompts_agent.errors import InputError, OutputError
from prompts_agent.record import Record

__all__ = ["Merged", "merge"]


class Merged(Record):
    """What came together."""

    rows: int
    journals: int
    repeated: int
    """Rows of items that another journal had too; the later one that is done counts."""


class _Part(Record):
    """One journal, and the head of its last run."""

    path: Path
    head: Begun


def merge(directories: Sequence[Path], output: Path, *, partial: bool = False) -> Merged:
    """Write the batch of all `directories` into `output`, which must hold none yet.

    Raises `InputError` where their flags differ, and, unless `partial`, where a shard is missing or
    not at its end.
    """
    for directory in directories:
        require_batch(directory)
    if any(output.glob("journal*.jsonl")):
        raise OutputError(
            str(output), rule="it holds a batch already", cure="Merge into a new directory."
        )
    rows: dict[str, Row] = {}
    places: dict[str, Path] = {}
    parts, read = [], 0
    for directory in dict.fromkeys(directories):
        for journal in journals_in(directory):
            part, own = _read(journal)
            parts += [part] if part is not None else []
            read += len(own)
            for key, row in own.items():
                if replaces(row, rows.get(key)):
                    rows[key], places[key] = row, directory
    _check(parts, rows.values(), partial=partial)
    with Store(output) as store:
        try:
            _write(rows, places, parts[-1].head, store)
            build_tables(output, rows=rows)
        except OSError as error:
            raise unwritable(output, error) from error
    return Merged(rows=len(rows), journals=len(parts), repeated=read - len(rows))


def _read(journal: Journal) -> tuple[_Part | None, dict[str, Row]]:
    head: Begun | None = None
    rows: dict[str, Row] = {}
    for entry in journal.entries():
        if isinstance(entry, Begun):
            head = entry
        elif replaces(entry, rows.get(entry.key)):
            rows[entry.key] = entry
    part = _Part(path=journal.path, head=head) if head is not None else None
    return part, rows


def _check(parts: Sequence[_Part], rows: Iterable[Row], *, partial: bool) -> None:
    if not parts:
        raise InputError(
            "the journals are empty", rule="a batch has begun", cure="Run the shards first."
        )
    for part in parts:
        require_same(parts[0].head.settings, part.head.settings, str(part.path.parent))
    shards = [part.head.shard for part in parts if part.head.shard is not None]
    lacking = [*_short(parts, [row.item for row in rows]), *_absent(shards)]
    if lacking and not partial:
        raise InputError(
            "; ".join(lacking[:8]),
            rule="a merge is of whole shards, so that no row is lost in silence",
            cure="Give those shards again, or merge what is there with --partial.",
        )


def _short(parts: Sequence[_Part], items: Sequence[Item]) -> list[str]:
    """Where items of a journal's last run have no row, in whatever journal."""
    found = []
    for part in parts:
        shard = part.head.shard
        done = sum(shard is None or shard.has(item) for item in items)
        if done < part.head.items:
            found.append(f"{part.path.name} has {done} of {part.head.items} rows")
    return found


def _absent(shards: Sequence[Shard]) -> list[str]:
    counts = {shard.count for shard in shards}
    if len(counts) > 1:
        return [f"shards of {' and of '.join(map(str, sorted(counts)))}"]
    known = {shard.index for shard in shards}
    every = range(1, max(counts, default=0) + 1)
    return [f"shard {index}/{len(every)} is not there" for index in every if index not in known]


def _write(rows: dict[str, Row], places: dict[str, Path], head: Begun, store: Store) -> None:
    """Reports first, the journal last and at once: a merge that was cut left no batch."""
    for key, row in rows.items():
        if row.report is not None:
            _take(report_path(places[key], row.report), store.directory, row)
    whole = head.model_copy(update={"shard": None, "items": len(rows)})
    lines = [f'{{"begun":{whole.model_dump_json()}}}']
    ordered = sorted(rows.values(), key=lambda row: (row.item.address, row.key))
    lines += [f'{{"row":{row.model_dump_json()}}}' for row in ordered]
    temporary = store.scratch / "journal"
    with temporary.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(store.directory / "journal.jsonl")


def _take(source: Path, output: Path, row: Row) -> None:
    if not source.exists():
        raise InputError(
            f"the report of {row.item.address}, {source}",
            rule="every row that is done has its report",
            cure="Restore it, or do that row again.",
        )
    target = output / "reports" / source.parent.parent.name / source.parent.name / source.name
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # another file system, or one without links
        os.link(source, target)
        return
    temporary = target.with_name(f".{target.name}")
    shutil.copyfile(source, temporary)
    temporary.replace(target)
