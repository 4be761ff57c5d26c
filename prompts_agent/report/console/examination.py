"""The doctor's sheet of a trace on a console."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.text import Text

from prompts_agent.report.console.layout import bullets, heading, indented
from prompts_agent.report.console.page import print_sections
from prompts_agent.report.console.terminal import Pen, pen_of
from prompts_agent.report.figures import short_sha
from prompts_agent.trace.doctor import Advice, Examination
from prompts_agent.units import format_bytes

__all__ = ["print_examination"]


def print_examination(examination: Examination, console: Console) -> None:
    """What the trace holds, what it lacks, and how to capture more."""
    pen = pen_of(console)
    file = examination.file
    head = f"{file.format}, {format_bytes(file.size_bytes)} · sha256 {short_sha(file.sha256)}"
    sections: list[RenderableType] = [pen.text(head, "bold")]
    for title, texts in (
        ("It holds", examination.holds),
        ("It lacks", examination.lacks),
        ("Read with care", file.caveats),
    ):
        if texts:
            items = bullets(pen, [pen.text(text) for text in texts])
            sections.append(Group(heading(pen, title), indented(items)))
    if examination.advice:
        blocks = [_advice(pen, advice) for advice in examination.advice]
        sections.append(Group(heading(pen, "How to capture more"), *blocks))
    print_sections(sections, console)


def _advice(pen: Pen, advice: Advice) -> RenderableType:
    how = [Text(pen.safe(line), style="cyan") for line in advice.how.splitlines()]
    return Group(
        indented(pen.text(advice.what, "bold")),
        indented(pen.text(advice.why), 4),
        indented(Group(*how), 4),
    )
