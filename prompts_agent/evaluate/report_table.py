"""The evaluation on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prompts_agent.evaluate.report_markdown import shown
from prompts_agent.evaluate.summary import Section

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_sections"]


def print_sections(sections: Sequence[Section], about: Sequence[str], console: Console) -> None:
    """A table for each kind of score, our line first and its baselines below it."""
    from rich import box
    from rich.table import Table

    for section in sections:
        console.print(f"\n{section.name} ({section.workloads} workloads)", style="bold")
        for table in section.tables:
            grid = Table(
                title=table.title,
                title_justify="left",
                box=box.SIMPLE_HEAD if console.encoding.startswith("utf") else box.ASCII,
            )
            grid.add_column("")
            for column in table.columns:
                grid.add_column(column, justify="right")
            for line in table.lines:
                cells = [shown(f, k) for f, k in zip(line.figures, table.kinds, strict=True)]
                grid.add_row(line.name, *cells)
            console.print(grid)
    for sentence in about:
        console.print(sentence, style="dim", highlight=False)
