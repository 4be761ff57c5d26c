"""`prompts compare`: two traces of one job, before and after a change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output, stdout_is_unicode, write_result
from prompts_agent.cli.progress import progress
from prompts_agent.cli.run import format_of

if TYPE_CHECKING:
    from prompts_agent.agents.comparison.comparison import Comparison
    from prompts_agent.agents.comparison.side import Given
    from prompts_agent.agents.report import Report
    from prompts_agent.knowledge.recipe import Recipe
    from prompts_agent.workload.workload import Workload

__all__ = ["Followed", "FollowedRank", "JobFile", "compare", "learnt"]

Followed = Annotated[
    Path | None,
    typer.Option(
        "--proposal",
        metavar="REPORT.json",
        help="The report whose proposal was followed: says how far its prediction was off.",
        show_default=False,
    ),
]
FollowedRank = Annotated[
    int | None,
    typer.Option(
        "--rank",
        min=1,
        help="Which of its proposals. Default: the one with the mesh that ran after.",
        show_default=False,
    ),
]
JobFile = Annotated[
    Path | None,
    typer.Option(
        "--workload",
        "-w",
        metavar="FILE",
        help="The job, where the traces do not tell it. Default: that of --proposal.",
        show_default=False,
    ),
]


def compare(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="A trace, its directory, or a stored report.")
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="A trace of the same job later.")],
    proposal: Followed = None,
    rank: FollowedRank = None,
    workload: JobFile = None,
    format_name: options.Format = None,
    output: options.Output = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """What a change of a job brought, in seconds.

    Exit codes: 0 done, 2 wrong input, 3 a trace tells no step time.
    """
    check_output(output, force=force)
    with progress(quiet=quiet, verbose=verbose) as tell:
        tell("read")
        found = compared(before, after, proposal, rank, workload)
    chosen = format_of(format_name, output)
    if chosen == "json":
        ascii_only = output is None and not stdout_is_unicode()
        text = found.model_dump_json(indent=2, ensure_ascii=ascii_only) + "\n"
        write_result(text, output, force=force)
    elif chosen in ("markdown", "github"):
        from prompts_agent.report.comparison.markdown import comparison_markdown

        write_result(comparison_markdown(found), output, force=force)
    elif output is not None:
        from prompts_agent.report.comparison.console import comparison_text

        write_result(comparison_text(found), output, force=force)
    else:
        print_text(found)


def compared(
    before: Path, after: Path, proposal: Path | None, rank: int | None, workload: Path | None
) -> Comparison:
    """The comparison that the options ask for."""
    from prompts_agent.agents.comparison.compare import compare_traces

    report, one, two = _asked((before, after), proposal, rank, workload)
    return compare_traces(one, two, report, rank)


def learnt(
    traces: tuple[Path, Path],
    proposal: Path | None,
    rank: int | None,
    workload: Path | None,
    change: str | None,
) -> Recipe:
    """The case that the options ask for."""
    from prompts_agent.agents.comparison.learn import learn

    report, one, two = _asked(traces, proposal, rank, workload)
    return learn(one, two, report, rank, change)[1]


def _asked(
    traces: tuple[Path, Path], proposal: Path | None, rank: int | None, workload: Path | None
) -> tuple[Report | None, Given, Given]:
    """The report, and what to read of both sides; the job is the file's, else the report's."""
    from prompts_agent.agents.comparison.outcome import planned_job
    from prompts_agent.errors import InputError
    from prompts_agent.report.stored import stored_report
    from prompts_agent.workload.yaml import load_workload

    if rank is not None and proposal is None:
        raise InputError(
            f"--rank {rank}", rule="it names a proposal of a report", cure="Add --proposal FILE."
        )
    report = stored_report(proposal) if proposal is not None else None
    job = load_workload(workload) if workload is not None else planned_job(report)
    one, two = (_given(path, job) for path in traces)
    return report, one, two


def _given(path: Path, job: Workload | None) -> Given:
    """A trace, or the profile in a stored report."""
    from prompts_agent.agents.comparison.side import Given
    from prompts_agent.agents.request import DiagnoseRequest
    from prompts_agent.report.stored import is_report, stored_report

    if not is_report(path):
        return Given(request=DiagnoseRequest(paths=(path,), workload=job))
    report = stored_report(path)
    if report.profile is None:
        from prompts_agent.errors import InputError

        raise InputError(
            str(path),
            rule="this report is of a plan: nothing was measured",
            cure="Give a trace, or the report of a diagnosis.",
        )
    request = DiagnoseRequest(workload=job)
    return Given(request=request, profile=report.profile, trace=report.trace)


def print_text(found: Comparison) -> None:
    """The page on stdout."""
    from prompts_agent.report.comparison.console import print_comparison
    from prompts_agent.report.console.terminal import result_console

    print_comparison(found, result_console(sys.stdout))
    sys.stdout.flush()
