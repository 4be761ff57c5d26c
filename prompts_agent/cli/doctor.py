"""`prompts doctor`: what a trace holds and lacks, and how to capture a better one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from prompts_agent.cli import options
from prompts_agent.cli.progress import progress

__all__ = ["doctor"]


def doctor(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="TRACE...", help="Trace files, run directories or log directories."),
    ],
    format_name: Annotated[
        Literal["text", "json"], typer.Option("--format", "-f", help="How to print it.")
    ] = "text",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """What a trace holds and lacks.

    And how to capture one that holds more.
    """
    with progress(quiet=quiet, verbose=verbose) as tell:
        from prompts_agent.trace.doctor import examine
        from prompts_agent.trace.measure.profile import measure
        from prompts_agent.trace.read import read

        tell("read")
        capture = read(tuple(paths))
        examination = examine(measure(capture), capture.file)
    if format_name == "json":
        from prompts_agent.cli.output import stdout_is_unicode, write_result

        text = examination.model_dump_json(indent=2, ensure_ascii=not stdout_is_unicode())
        write_result(text + "\n", None, force=False)
        return
    from prompts_agent.report.console.examination import print_examination
    from prompts_agent.report.console.terminal import result_console

    print_examination(examination, result_console(sys.stdout))
    sys.stdout.flush()
