"""`prompts emit`: one proposal of a stored report, written for a framework."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output, write_result

if TYPE_CHECKING:
    from prompts_agent.agents.report import Proposal, Report

__all__ = ["emit"]


def emit(
    report: Annotated[
        Path, typer.Argument(metavar="REPORT.json", help="What --format json wrote.")
    ],
    rank: Annotated[int, typer.Option("--rank", min=1, help="Which proposal.")] = 1,
    framework: options.Framework = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """One proposal, written for a framework.

    The config goes to stdout, so that it can be redirected; notes and the command that checks it
    go to stderr.
    """
    check_output(output, force=force)
    from prompts_agent.emit.facts import JobFacts
    from prompts_agent.emit.registry import default_framework
    from prompts_agent.emit.registry import emit as write
    from prompts_agent.errors import InputError
    from prompts_agent.report.stored import stored_report
    from prompts_agent.report.text import plain

    found = stored_report(report)
    proposal = _proposal(found, rank, report)
    facts = JobFacts.of(found)
    if facts is None:
        raise InputError(
            str(report),
            rule="it holds no workload, so phase and sequence are not known",
            cure="Write the report again with this version of prompts.",
        )
    name = framework or default_framework(facts)
    stored = proposal.config
    config = stored if stored and stored.framework == name else write(proposal.layout, facts, name)
    write_result(config.text, output, force=force)
    for note in config.notes:
        sys.stderr.write(f"note: {plain(note)}\n")
    if config.check_command is not None:
        sys.stderr.write(f"check: {plain(config.check_command)}\n")


def _proposal(report: Report, rank: int, path: Path) -> Proposal:
    from prompts_agent.errors import InputError

    for proposal in report.proposals:
        if proposal.rank == rank:
            return proposal
    ranks = ", ".join(str(proposal.rank) for proposal in report.proposals)
    raise InputError(
        f"rank {rank} of {path}",
        rule=f"its proposals are {ranks}" if ranks else "it holds no proposal",
        cure="Give one of them." if ranks else "Read why with `prompts diagnose`.",
    )
