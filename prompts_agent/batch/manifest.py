"""Manifest: a table with a row an item: CSV, JSON lines or Parquet.

Columns: `path` (or `trace`, `address`), and where they are known `workload`, `job`, `date` (or
`recorded_at`) and `hours_per_week`. Others are ignored. Relative paths are from the manifest.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prompts_agent.batch.item import Item, absolute, item_of
from prompts_agent.batch.remote import is_remote, read_bytes
from prompts_agent.errors import InputError

__all__ = ["is_manifest", "read_manifest"]

_SUFFIXES = (".csv", ".jsonl", ".ndjson", ".parquet")
_PATHS = ("path", "trace", "address")
_DATES = ("date", "recorded_at")


def is_manifest(name: str) -> bool:
    """By its suffix: no trace has one of these."""
    return name.lower().endswith(_SUFFIXES)


def read_manifest(address: str) -> list[Item]:
    """The items, in the order of the rows. Raises `InputError` with the row's number."""
    items: list[Item] = []
    number = 0
    for number, row in enumerate(_rows(address), 1):
        place = f"{address}, row {number}"
        items.append(_item(row, address, place))
    if not number:
        raise InputError(
            f"{address} has no row",
            rule="a manifest names a trace a row, in a column `path`",
            cure="Add a header line and rows, or give a directory.",
        )
    return items


def _rows(address: str) -> Iterator[Mapping[str, Any]]:
    name = address.lower()
    if name.endswith(".parquet"):
        yield from _parquet(address)
        return
    data = read_bytes(address)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{address} is not UTF-8 ({error.reason} at byte {error.start})",
            rule="a manifest is UTF-8 text, or Parquet",
            cure="Save it as UTF-8.",
        ) from error
    if name.endswith(".csv"):
        yield from csv.DictReader(io.StringIO(text, newline=""))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            row = error
        if not isinstance(row, dict):
            raise InputError(
                f"{address}, line {number}: {line.strip()[:60]}",
                rule="each line is a JSON object with a `path`",
                cure="Mend that line.",
            )
        yield row


def _parquet(address: str) -> Iterator[Mapping[str, Any]]:
    from prompts_agent.batch.extra import pyarrow_parquet

    parquet = pyarrow_parquet()
    import pyarrow as pa

    try:
        table = parquet.read_table(pa.BufferReader(read_bytes(address)))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"{address} cannot be read ({str(error).splitlines()[0]})",
            rule="a manifest ending in .parquet is Parquet",
            cure="Write it again.",
        ) from error
    for batch in table.to_batches(max_chunksize=1024):
        yield from batch.to_pylist()


def _item(row: Mapping[str, Any], manifest: str, place: str) -> Item:
    values = {str(k).strip().lower(): v for k, v in row.items() if k and v not in (None, "")}
    path = next((values[name] for name in _PATHS if name in values), None)
    if path is None:
        raise InputError(
            f"{place} has no path",
            rule="each row names its trace in a column `path`",
            cure=f"Its columns are: {', '.join(map(str, row)) or 'none'}.",
        )
    known = {
        "workload": _beside(manifest, values["workload"]) if "workload" in values else None,
        "job": str(values["job"]) if "job" in values else None,
        "recorded_at": next((_date(values[n], place) for n in _DATES if n in values), None),
        "hours_per_week": values.get("hours_per_week"),
    }
    try:
        return item_of(_beside(manifest, path), **known)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            f"{place}: {'.'.join(map(str, first['loc']))} {first.get('input')!r}",
            rule=first["msg"],
            cure="Mend that row.",
        ) from error


def _beside(manifest: str, path: object) -> str:
    text = str(path).strip()
    if is_remote(text):
        return text
    if is_remote(manifest) and not text.startswith("/"):
        return f"{manifest.rpartition('/')[0]}/{text}"
    return absolute(Path(manifest).parent / Path(text).expanduser())


def _date(value: object, place: str) -> datetime:
    if isinstance(value, datetime):
        found = value
    elif isinstance(value, date):
        found = datetime(value.year, value.month, value.day, tzinfo=UTC)
    else:
        try:
            found = datetime.fromisoformat(str(value).strip())
        except ValueError as error:
            raise InputError(
                f"{place}: date {str(value)[:40]!r}",
                rule="dates are written as 2026-01-31 or 2026-01-31T12:30:00",
                cure="Mend that row.",
            ) from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
