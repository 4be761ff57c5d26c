"""Faults of files that a person edits: one block each on stdout, and the exit code."""

from __future__ import annotations

from typing import NamedTuple

import typer

__all__ = ["Fault", "finish"]


class Fault(NamedTuple):
    """Where, what was seen, the rule it breaks, the cure."""

    file: str
    value: str
    rule: str
    cure: str


def finish(faults: list[Fault], checked: str) -> None:
    """Print the faults, or that there are none; exit with 2 where there are."""
    from prompts_agent.errors import ExitCode
    from prompts_agent.report.text import plain

    for fault in faults:
        typer.echo(f"{plain(fault.file)}: {plain(fault.value)}")
        typer.echo(f"  rule: {plain(fault.rule)}")
        typer.echo(f"  cure: {plain(fault.cure)}")
    if faults:
        raise typer.Exit(int(ExitCode.BAD_INPUT))
    typer.echo(f"no fault: {checked}")
