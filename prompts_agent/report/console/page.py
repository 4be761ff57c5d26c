"""The page: every section in its order, on a console."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

from prompts_agent.agents.report import Report
from prompts_agent.report.console.closing import closing_sections
from prompts_agent.report.console.findings import findings_section
from prompts_agent.report.console.header import answer, facts_grid, step_section
from prompts_agent.report.console.layout import indented
from prompts_agent.report.console.proposals import proposals_section
from prompts_agent.report.console.terminal import PIPE_WIDTH, pen_of

__all__ = ["page_text", "print_report"]


def print_report(report: Report, console: Console) -> None:
    """Print the report. The console's width, colours and encoding decide how it looks."""
    pen = pen_of(console)
    sections: list[RenderableType | None] = [
        answer(pen, report),
        indented(facts_grid(pen, report)),
        step_section(pen, report, console.width),
        findings_section(pen, report),
        *proposals_section(pen, report, console.width),
        *closing_sections(pen, report),
    ]
    shown = [section for section in sections if section is not None]
    for number, section in enumerate(shown):
        if number:
            console.print()
        console.print(section)


def page_text(report: Report, width: int = PIPE_WIDTH) -> str:
    """The page without colour, for a file."""
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width, color_system=None, emoji=False))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"
