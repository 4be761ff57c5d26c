"""`prompts explain`: the whole sum behind a proposal, or why one beats another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output, stdout_is_unicode, write_result

__all__ = ["explain"]

ExplainFormat = Literal["text", "json", "markdown"]


def explain(
    report: Annotated[
        Path,
        typer.Argument(metavar="REPORT.json", help="What diagnose or plan --format json wrote."),
    ],
    rank: Annotated[
        int, typer.Option("--rank", min=0, help="Which proposal; 0 is today's layout.")
    ] = 1,
    diff: Annotated[
        tuple[int, int] | None,
        typer.Option(
            "--diff",
            metavar="A B",
            help="Instead: why proposal A stands before proposal B, term by term.",
            show_default=False,
        ),
    ] = None,
    format_name: Annotated[
        ExplainFormat | None,
        typer.Option(
            "--format",
            "-f",
            help="How to print it. Default: by the suffix of --output, else text.",
            show_default=False,
        ),
    ] = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Every term of a proposal's step time and memory: formula, value, source."""
    check_output(output, force=force)
    from prompts_agent.cli.run import format_of
    from prompts_agent.report.explain.page import explained
    from prompts_agent.report.stored import stored_report

    name = format_of(format_name, output)
    found = stored_report(report)
    text = explained(found, rank=rank, diff=diff, format_name=name, width=_width(output))
    if output is None and not stdout_is_unicode():
        from prompts_agent.report.text import to_ascii

        text = to_ascii(text)
    write_result(text, output, force=force)


def _width(output: Path | None) -> int:
    from prompts_agent.report.console.terminal import PIPE_WIDTH, result_console

    return PIPE_WIDTH if output is not None else result_console(sys.stdout).width
