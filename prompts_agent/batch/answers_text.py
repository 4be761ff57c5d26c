"""Answers as text for a terminal, CSV, JSON lines or Markdown; names in them are made harmless."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal

from prompts_agent.batch.ask import Answered
from prompts_agent.report.plain import plain
from prompts_agent.report.text import to_ascii

__all__ = ["TableFormat", "answers_text"]

TableFormat = Literal["text", "csv", "json", "markdown"]
_CELL = 60
"""Characters of a cell on a page; CSV and JSON have all of them."""
_FORMULA = ("=", "+", "-", "@")


def answers_text(
    answers: Sequence[Answered], format_name: TableFormat, *, width: int, unicode: bool = True
) -> str:
    """All answers, one below the other; JSON is one object a row, with the answer's name."""
    if format_name == "csv":
        return "\n".join(map(_csv, answers))
    if format_name == "json":
        return "".join(_json(answer, ascii_only=not unicode) for answer in answers)
    if format_name == "markdown":
        text = "\n".join(map(_markdown, answers))
    else:
        text = "\n".join(_page(answer, width, unicode=unicode) for answer in answers)
    return text if unicode else to_ascii(text)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e15 else f"{value:.6g}"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return plain(", ".join(map(str, value)))
    return plain(str(value))


def _short(value: Any) -> str:
    """The end of a path tells more than its start."""
    text = _shown(value)
    if len(text) <= _CELL:
        return text
    return "…" + text[1 - _CELL :] if text.startswith("/") else text[: _CELL - 1] + "…"


def _is_number(answer: Answered, column: int) -> bool:
    values = [row[column] for row in answer.rows if row[column] is not None]
    return bool(values) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )


def _page(answer: Answered, width: int, *, unicode: bool) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    target = io.StringIO()
    console = Console(file=target, width=width, markup=False, highlight=False, emoji=False)
    if answer.title:
        console.print(answer.title)
    if answer.rows:
        grid = Table(box=box.SIMPLE_HEAD if unicode else box.ASCII, pad_edge=False)
        for place, name in enumerate(answer.columns):
            right = _is_number(answer, place)
            grid.add_column(
                Text(plain(name.strip())),
                justify="right" if right else "left",
                overflow="fold",
            )
        for row in answer.rows:
            grid.add_row(*(Text(_short(value)) for value in row))
        console.print(grid)
    elif answer.none or not answer.columns:
        console.print(f"  {answer.none or 'done'}")
    else:
        console.print("  no row")
    if answer.note and answer.rows:
        console.print(f"  {answer.note}")
    lines = (line.rstrip() for line in target.getvalue().splitlines())
    return "\n".join(lines) + "\n"


def _csv(answer: Answered) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(column.strip() for column in answer.columns)
    for row in answer.rows:
        writer.writerow(_cell(value) for value in row)
    return target.getvalue()


def _cell(value: Any) -> Any:
    """A spreadsheet must not run what a trace was named."""
    if isinstance(value, str):
        text = plain(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return "" if value is None else value


def _json(answer: Answered, *, ascii_only: bool) -> str:
    lines = []
    for row in answer.rows:
        named = {"answer": answer.name} if answer.name else {}
        values = {c.strip(): v for c, v in zip(answer.columns, row, strict=True)}
        lines.append(json.dumps(named | values, ensure_ascii=ascii_only, default=_plain_json))
    return "".join(f"{line}\n" for line in lines)


def _plain_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def _markdown(answer: Answered) -> str:
    def cell(value: Any) -> str:
        text = _short(value)
        for sign in "\\`*_[]<>|":
            text = text.replace(sign, f"\\{sign}")
        return text

    parts = [f"## {answer.title}\n"] if answer.title else []
    if answer.rows:
        rights = [_is_number(answer, place) for place in range(len(answer.columns))]
        lines = [
            "| " + " | ".join(cell(column.strip()) for column in answer.columns) + " |",
            "| " + " | ".join("---:" if right else "---" for right in rights) + " |",
            *("| " + " | ".join(map(cell, row)) + " |" for row in answer.rows),
        ]
        parts.append("\n".join(lines) + "\n")
        parts += [answer.note + "\n"] if answer.note else []
    else:
        parts.append((answer.none or "No row.") + "\n")
    return "\n".join(parts)
