"""The page: every section in its order, on a console."""

from __future__ import annotations

import io

from rich.console import Console, Group, RenderableType
from rich.text import Text

from prompts_agent.agents.report import Report
from prompts_agent.report.console.closing import closing_sections
from prompts_agent.report.console.findings import findings_section
from prompts_agent.report.console.header import answer, facts_grid, step_section
from prompts_agent.report.console.layout import indented
from prompts_agent.report.console.opinion import opinion_section
from prompts_agent.report.console.proposals import proposals_section
from prompts_agent.report.console.terminal import PIPE_WIDTH, pen_of

__all__ = ["page_text", "print_report", "print_sections"]


def print_report(report: Report, console: Console) -> None:
    """Print the report. The console's width, colours and encoding decide how it looks."""
    pen = pen_of(console)
    sections: list[RenderableType | None] = [
        answer(pen, report),
        indented(facts_grid(pen, report)),
        step_section(pen, report, console.width),
        findings_section(pen, report),
        *proposals_section(pen, report, console.width),
        opinion_section(pen, report),
        *closing_sections(pen, report),
    ]
    print_sections([section for section in sections if section is not None], console)


def print_sections(sections: list[RenderableType], console: Console) -> None:
    """Sections with an empty line between them.

    Off a terminal no line ends in blanks: logs and diffs would keep them.
    """
    spaced = [item for section in sections for item in (Text(), section)][1:]
    if console.is_terminal:
        console.print(Group(*spaced), crop=False)
        return
    with console.capture() as capture:
        console.print(Group(*spaced), crop=False)
    lines = capture.get().split("\n")
    console.file.write("\n".join(line.rstrip(" ") for line in lines))


def page_text(report: Report, width: int = PIPE_WIDTH) -> str:
    """The page without colour, for a file."""
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=width, color_system=None, emoji=False))
    return stream.getvalue()
