"""Tables: jobs, findings, proposals and facts as Parquet, derived from journal and reports.

Rows stand in the order of address and workload, so that a batch that was interrupted has the same
tables as one that was not.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prompts_agent.batch.columns import TABLES, TABLES_VERSION, rows_of
from prompts_agent.batch.extra import pyarrow_parquet
from prompts_agent.batch.journal import rows_in
from prompts_agent.batch.row import Row
from prompts_agent.batch.store import report_path, unwritable, write_json
from prompts_agent.errors import InputError

__all__ = ["TABLES_TARGET", "are_current", "build_in_child", "build_tables", "digest_of"]

TABLES_TARGET = f"{__name__}:build_in_child"

_BATCH = 500
"""Rows that are held as Python's."""
_GROUP = 50_000
"""Rows of a group in the file."""
_ABOUT = "tables.json"


def digest_of(rows: Mapping[str, Row]) -> str:
    """What tables of these rows are recognised by."""
    digest = hashlib.sha256(TABLES_VERSION.encode())
    for key in sorted(rows):
        row = rows[key]
        digest.update(f"{key} {row.status} {row.report} {row.finished_at.isoformat()}\n".encode())
    return digest.hexdigest()


def are_current(directory: Path, digest: str) -> bool:
    """Whether the tables in `directory`/tables are of the rows with that digest."""
    place = directory / "tables"
    try:
        about = json.loads((place / _ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return about.get("digest") == digest and all((place / f"{n}.parquet").exists() for n in TABLES)


def build_tables(
    directory: Path, into: Path | None = None, rows: Mapping[str, Row] | None = None
) -> Path:
    """Write the tables of the batch in `directory`, unless they are there; where they are.

    `into` None: `directory`/tables. Raises `SettingError` without pyarrow, `InputError` for a
    report that is missing or damaged, `OSError` for a disk that is full.
    """
    rows = rows_in(directory) if rows is None else rows
    digest = digest_of(rows)
    if into is None and are_current(directory, digest):
        return directory / "tables"
    place = directory / "tables" if into is None else into
    parquet = pyarrow_parquet()
    place.mkdir(parents=True, exist_ok=True)
    temporary = place / ".new"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        _write(directory, rows, temporary, parquet)
        for name in TABLES:
            (temporary / f"{name}.parquet").replace(place / f"{name}.parquet")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    about = {"schema_version": TABLES_VERSION, "rows": len(rows), "digest": digest}
    write_json(place / _ABOUT, about)
    return place


def build_in_child(payload: bytes) -> bytes:
    """`build_tables` of the directory with that name: what a worker does. Raises `OutputError`."""
    directory = Path(os.fsdecode(payload))
    try:
        build_tables(directory)
    except OSError as error:
        raise unwritable(directory / "tables", error) from error
    return b""


def _write(directory: Path, rows: Mapping[str, Row], place: Path, parquet: Any) -> None:
    writers = {name: _Writer(place / f"{name}.parquet", name, parquet) for name in TABLES}
    try:
        for row in sorted(rows.values(), key=lambda r: (r.item.address, r.item.workload or "")):
            for table, values in rows_of(row, _report(directory, row)):
                writers[table].add(values)
    finally:
        for writer in writers.values():
            writer.close()


def _report(directory: Path, row: Row) -> Mapping[str, Any] | None:
    if row.report is None:
        return None
    import orjson

    path = report_path(directory, row.report)
    try:
        found: Mapping[str, Any] = orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(
            f"the report of {row.item.address}, {path} ({error})",
            rule="every row that is done has its report",
            cure="Restore it; or remove its row from the journal, and give the batch again.",
        ) from error
    return found


class _Writer:
    """One table's file. Rows wait as Arrow's, which are a tenth of Python's."""

    def __init__(self, path: Path, table: str, parquet: Any) -> None:
        self._schema = schema_of(table)
        self._rows: list[Mapping[str, Any]] = []
        self._batches: list[Any] = []
        self._held = 0
        self._file = parquet.ParquetWriter(path, self._schema, compression="zstd")

    def add(self, values: Mapping[str, Any]) -> None:
        self._rows.append(values)
        if len(self._rows) >= _BATCH:
            self._pack()
        if self._held >= _GROUP:
            self._flush()

    def _pack(self) -> None:
        import pyarrow as pa

        self._batches.append(pa.RecordBatch.from_pylist(self._rows, self._schema))
        self._held += len(self._rows)
        self._rows = []

    def _flush(self) -> None:
        import pyarrow as pa

        if self._batches:
            self._file.write_table(pa.Table.from_batches(self._batches, self._schema))
        self._batches, self._held = [], 0

    def close(self) -> None:
        if self._rows:
            self._pack()
        self._flush()
        self._file.close()


def schema_of(table: str) -> Any:
    """The Arrow schema, with the version of these tables in its metadata."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "strings": pa.list_(pa.string()),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    fields = [pa.field(name, types[kind]) for name, kind in TABLES[table].items()]
    return pa.schema(fields, metadata={"prompts.schema_version": TABLES_VERSION})
