"""A stored report's explanation in the format that was asked for."""

from __future__ import annotations

from prompts_agent.agents.report import Report
from prompts_agent.errors import InputError
from prompts_agent.report.explain.difference import difference
from prompts_agent.report.explain.explanation import explanation
from prompts_agent.report.explain.markdown import difference_markdown, explanation_markdown
from prompts_agent.report.explain.text import difference_text, explanation_text

__all__ = ["explained"]


def explained(
    report: Report, *, rank: int, diff: tuple[int, int] | None, format_name: str, width: int
) -> str:
    """`format_name` is text, json or markdown. Raises `InputError` for another one, and where the
    report has no such rank.
    """
    if format_name not in ("text", "json", "markdown"):
        raise InputError(
            f"--format {format_name}",
            rule="an explanation is text, json or markdown",
            cure="Give one of these.",
        )
    if diff is not None:
        apart = difference(report, *diff)
        if format_name == "json":
            return apart.model_dump_json(indent=2) + "\n"
        if format_name == "markdown":
            return difference_markdown(apart)
        return difference_text(apart, width)
    found = explanation(report, rank)
    if format_name == "json":
        return found.model_dump_json(indent=2) + "\n"
    if format_name == "markdown":
        return explanation_markdown(found)
    return explanation_text(found, width)
