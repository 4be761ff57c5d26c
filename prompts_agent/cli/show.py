"""`prompts show`: a stored report in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output
from prompts_agent.cli.run import format_of, write_report

__all__ = ["show"]


def show(
    report: Annotated[
        Path, typer.Argument(metavar="REPORT.json", help="What --format json wrote.")
    ],
    format_name: options.Format = None,
    commit: options.Commit = None,
    redact: options.Redact = True,
    tag: Annotated[
        str,
        typer.Option(
            "--tag", help="--format github: which of several comments of a pull request this is."
        ),
    ] = "sharding",
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """A stored report, in any format."""
    check_output(output, force=force)
    from prompts_agent.report.stored import stored_report

    found = stored_report(report)
    write_report(
        found,
        format_of(format_name, output),
        output,
        force=force,
        commit=commit,
        redact=redact,
        tag=tag,
    )
