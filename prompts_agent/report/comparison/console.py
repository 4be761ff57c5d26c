"""A comparison on a console: the answer, the runs, seconds by part and finding, the prediction."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table

from prompts_agent.agents.comparison.comparison import Comparison, Shift
from prompts_agent.report.comparison import words
from prompts_agent.report.console.layout import bullets, grid, heading, indented
from prompts_agent.report.console.page import print_sections
from prompts_agent.report.console.terminal import PIPE_WIDTH, Pen, pen_of

__all__ = ["comparison_text", "print_comparison"]

_STYLES = {"faster": "green", "slower": "red", "within_noise": "yellow", "unknown": "yellow"}


def print_comparison(found: Comparison, console: Console) -> None:
    """Print it. The console's width, colours and encoding decide how it looks."""
    pen = pen_of(console)
    sections: list[RenderableType | None] = [
        _answer(pen, found),
        indented(_runs(pen, found)),
        _likeness(pen, found),
        _shifts(pen, "Where the step changed", (*found.parts, found.step)),
        _shifts(pen, "By finding", found.findings),
        _list(
            pen,
            "The prediction that was followed",
            words.outcome_lines(found.outcome) if found.outcome is not None else (),
        ),
        _list(pen, "Read with care", found.caveats),
    ]
    print_sections([section for section in sections if section is not None], console)


def comparison_text(found: Comparison, width: int = PIPE_WIDTH) -> str:
    """The page without colour, for a file."""
    stream = io.StringIO()
    print_comparison(found, Console(file=stream, width=width, color_system=None, emoji=False))
    return stream.getvalue()


def _answer(pen: Pen, found: Comparison) -> RenderableType:
    lines = [pen.text(words.headline(found), "bold"), pen.text(words.layout_line(found))]
    return Panel(
        Group(*lines),
        box=box.ASCII if pen.ascii_only else box.ROUNDED,
        border_style=_STYLES[found.direction] if found.alike else "yellow",
        padding=(0, 1),
        expand=True,
    )


def _runs(pen: Pen, found: Comparison) -> RenderableType:
    rows: list[tuple[str, RenderableType]] = [
        ("before", pen.text(words.run_line(found.before))),
        ("after", pen.text(words.run_line(found.after))),
    ]
    if found.job is not None:
        rows.append(("job", pen.text(found.job)))
    rows.append(("noise", pen.text(words.noise_line(found).removeprefix("noise "))))
    return grid(pen, rows)


def _likeness(pen: Pen, found: Comparison) -> RenderableType:
    lines = [*words.differences(found.likeness), words.same_line(found.likeness)]
    items = [pen.text(line) for line in lines if line]
    return Group(heading(pen, words.likeness_title(found)), indented(bullets(pen, items)))


def _shifts(pen: Pen, title: str, shifts: Sequence[Shift]) -> RenderableType | None:
    if not shifts:
        return None
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", max_width=40)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim", overflow="fold")
    table.add_row(*(pen.text(text, "dim") for text in ("", "before", "after", "change", "")))
    for item in shifts:
        clear = item.within_noise is False
        style = "" if not clear else "green" if (item.change_s or 0.0) < 0 else "red"
        before, after, change = map(pen.text, words.cells(item))
        change.stylize(style)
        table.add_row(pen.text(item.what), before, after, change, pen.text(words.note(item), "dim"))
    return Group(heading(pen, title), indented(table))


def _list(pen: Pen, title: str, lines: Sequence[str]) -> RenderableType | None:
    if not lines:
        return None
    return Group(heading(pen, title), indented(bullets(pen, [pen.text(line) for line in lines])))
