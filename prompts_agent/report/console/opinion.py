"""What the language model adds: its own section, so that nobody takes it for a measurement."""

from __future__ import annotations

from rich.console import Group, RenderableType

from prompts_agent.agents.report import Report
from prompts_agent.report.console.layout import bullets, grid, heading, indented
from prompts_agent.report.console.terminal import Pen
from prompts_agent.report.opinions import TITLE, opinion_lines, opinion_parts

__all__ = ["opinion_section"]


def opinion_section(pen: Pen, report: Report) -> RenderableType | None:
    """Who was asked, what it took, and what it said; None without a model."""
    if report.opinion is None:
        return None
    lines: list[RenderableType] = [
        indented(pen.text(line, "dim")) for line in opinion_lines(report.opinion)
    ]
    rows: list[tuple[str, RenderableType]] = [
        (part.label, bullets(pen, [pen.text(line) for line in part.lines]))
        for part in opinion_parts(report)
    ]
    if rows:
        lines.append(indented(grid(pen, rows, width=10)))
    return Group(heading(pen, TITLE), *lines)
