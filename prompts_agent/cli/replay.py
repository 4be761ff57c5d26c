"""`prompts replay`: shows the report of a recorded run again, with no model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prompts_agent.cli import options

__all__ = ["replay"]


def replay(
    record: Annotated[
        Path, typer.Argument(metavar="RECORD", help="A file that --record wrote (JSON lines).")
    ],
    format_name: options.Format = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """The report of a recorded run, with no language model.

    Exit codes: as of the run; 2 for a file that is no record or holds no report.
    """
    from prompts_agent.agents.llm.run_record import report_of
    from prompts_agent.cli.output import check_output
    from prompts_agent.cli.run import exit_code_of_report, format_of, write_report

    check_output(output, force=force)
    report = report_of(record)
    write_report(report, format_of(format_name, output), output, force=force)
    code = exit_code_of_report(report)
    if code:
        raise typer.Exit(code)
