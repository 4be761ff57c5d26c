"""A comparison as GitHub Markdown, for a pull request's comment."""

from __future__ import annotations

from collections.abc import Sequence

from prompts_agent.agents.comparison.comparison import Comparison, Shift
from prompts_agent.report.comparison import words
from prompts_agent.report.markdown import escaped

__all__ = ["comparison_markdown"]


def comparison_markdown(found: Comparison) -> str:
    """Headline, meshes, two tables and the prediction, with a final newline."""
    about = [
        f"before: {words.run_line(found.before)}",
        f"after: {words.run_line(found.after)}",
        *([f"job: {found.job}"] if found.job is not None else []),
        words.noise_line(found),
        *words.differences(found.likeness),
        words.same_line(found.likeness),
    ]
    outcome = words.outcome_lines(found.outcome) if found.outcome is not None else []
    sections = [
        f"### {escaped(words.headline(found))}",
        escaped(words.layout_line(found)),
        _list(about),
        _table("part of a step", (*found.parts, found.step)),
        _table("finding", found.findings),
        _titled("Prediction", outcome),
        _titled("Read with care", found.caveats),
        f"<sub>prompts {escaped(found.tool_version)}</sub>",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines if line)


def _titled(title: str, lines: Sequence[str]) -> str:
    return f"**{title}**\n\n{_list(lines)}" if lines else ""


def _table(what: str, shifts: Sequence[Shift]) -> str:
    if not shifts:
        return ""
    lines = [f"| {what} | before | after | change | |", "|:--|--:|--:|--:|:--|"]
    for item in shifts:
        row = (escaped(item.what), *words.cells(item), words.note(item))
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)
