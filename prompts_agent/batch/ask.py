"""Ask: DuckDB over the tables of a batch, in memory; nothing is written into it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prompts_agent.batch.columns import TABLES
from prompts_agent.batch.extra import duckdb
from prompts_agent.batch.questions import QUESTIONS, VIEWS, Question
from prompts_agent.batch.store import require_batch
from prompts_agent.batch.tables import build_tables
from prompts_agent.errors import InputError
from prompts_agent.record import Record

__all__ = ["Answered", "Asked", "answers", "ask", "parse_date"]


class Asked(Record):
    """What `report` may be told."""

    since: datetime | None = None
    until: datetime | None = None
    limit: int = 20


class Answered(Record):
    """Columns and rows of one answer."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    name: str = ""
    title: str = ""
    note: str = ""
    none: str = ""


def ask(directory: Path, query: str) -> Answered:
    """Rows of any query over `jobs`, `findings`, `proposals` and `facts`.

    Raises `InputError` for a directory without a batch and for a query that DuckDB refuses.
    """
    with _opened(directory) as connection:
        return _run(connection, query)


def answers(directory: Path, asked: Asked | None = None) -> list[Answered]:
    """Every question's answer."""
    asked = asked or Asked()
    with _opened(directory) as connection:
        found = []
        for question in QUESTIONS:
            one = _run(connection, _filled(question, asked))
            about = {name: getattr(question, name) for name in ("name", "title", "note", "none")}
            found.append(one.model_copy(update=about))
        return found


def parse_date(text: str, option: str) -> datetime:
    """A date as people write it, in UTC. Raises `InputError`."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(
            f"{option} {text}", rule="a date is written as 2026-01-31", cure="Write it so."
        ) from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _filled(question: Question, asked: Asked) -> str:
    def moment(value: datetime | None) -> str:
        return "null" if value is None else f"timestamptz '{value.isoformat()}'"

    sql = question.sql.replace("{limit}", str(asked.limit))
    return sql.replace("{since}", moment(asked.since)).replace("{until}", moment(asked.until))


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[Any]:
    require_batch(directory)
    engine = duckdb()
    with tempfile.TemporaryDirectory(prefix="prompts-tables-") as elsewhere:
        try:
            place = build_tables(directory)
        except OSError:  # a batch that may only be read
            place = build_tables(directory, Path(elsewhere))
        connection = engine.connect(":memory:")
        try:
            connection.execute("set timezone = 'UTC'")
            for name in TABLES:
                path = str(place / f"{name}.parquet").replace("'", "''")
                connection.execute(f"create view {name} as from read_parquet('{path}')")
            for view in VIEWS.split(";"):
                if view.strip():
                    connection.execute(view)
            yield connection
        finally:
            connection.close()


def _run(connection: Any, query: str) -> Answered:
    try:
        cursor = connection.execute(query)
        description = cursor.description or ()
        rows = cursor.fetchall() if description else []
    except duckdb().Error as error:
        said = str(error).strip()
        raise InputError(
            said.splitlines()[0] if said else "the query failed",
            rule=f"the tables are {', '.join(TABLES)}; docs/batch.md lists their columns",
            cure=" ".join(said.splitlines()[1:]).strip()
            or 'prompts batch sql DIR "describe jobs" lists them.',
        ) from error
    return Answered(
        columns=tuple(column[0] for column in description), rows=tuple(map(tuple, rows))
    )
