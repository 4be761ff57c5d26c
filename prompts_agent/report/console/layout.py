"""The few shapes that a page is made of: a heading, a grid of labels, a list."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from prompts_agent.report.console.terminal import Pen

__all__ = ["bullets", "grid", "heading", "indented"]


def heading(pen: Pen, title: str, style: str = "bold") -> RenderableType:
    """A title with a line to the right edge."""
    return Rule(
        pen.text(title, style),
        align="left",
        characters="-" if pen.ascii_only else "─",
        style="dim",
    )


def indented(content: RenderableType, by: int = 2) -> Padding:
    """Content moved to the right."""
    return Padding(content, (0, 0, 0, by))


def grid(pen: Pen, rows: Iterable[tuple[str, RenderableType]], width: int = 9) -> Table:
    """Labels on the left, content on the right, wrapped in its own column."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(style="dim", no_wrap=True, width=width)
    table.add_column(ratio=1, overflow="fold")
    for label, content in rows:
        table.add_row(pen.text(label), content)
    return table


def bullets(pen: Pen, items: Iterable[Text]) -> Group:
    """A list whose lines hang."""
    mark = "*" if pen.ascii_only else "•"
    rows = []
    for item in items:
        table = Table.grid(padding=(0, 1, 0, 0), expand=True)
        table.add_column(style="dim", width=1)
        table.add_column(ratio=1, overflow="fold")
        table.add_row(Text(mark), item)
        rows.append(table)
    return Group(*rows)
