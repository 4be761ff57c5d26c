"""`prompts simulate`: the trace that a compiled layout would leave, with no chip attached."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output, write_result

__all__ = ["simulate"]


Job = Annotated[Path, typer.Argument(metavar="WORKLOAD.yaml", help="A workload file.")]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", help="what_if.xplane.pb, or what_if.xplane.pb.gz."
    ),
]
LayoutText = Annotated[
    str | None,
    typer.Option(
        "--layout",
        "-l",
        metavar="AXES",
        help="fsdp=16,tensor=4,remat=full. Default: the first that the file names.",
        show_default=False,
    ),
]
Steps = Annotated[int, typer.Option("--steps", min=1, max=20, help="Steps in the trace.")]
Rung = Annotated[
    Literal["fit", "full"],
    typer.Option(
        "--rung",
        help="fit: ops take a roofline of their work, in seconds. full: the compiler's own "
        "cycle counts, after a whole compile, in minutes.",
    ),
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=1.0, metavar="SECONDS", help="Of the compile.")
]


def simulate(
    workload: Job,
    output: Output,
    layout: LayoutText = None,
    force: options.Force = False,
    steps: Steps = 3,
    rung: Rung = "fit",
    timeout: Timeout = 600.0,
) -> None:
    """The trace that a layout would leave: its compiled schedule on a clock, marked as simulated.

    XProf opens the file and `prompts diagnose` reads it. Exit codes: 0 written, 2 wrong input,
    3 the compiler gave no schedule.
    """
    check_output(output, force=force)
    from prompts_agent.compile.given import layout_from, layouts_of
    from prompts_agent.compile.request import Until
    from prompts_agent.compile.simulate.simulate import packed, simulated_text
    from prompts_agent.compile.simulate.simulate import simulate as simulated
    from prompts_agent.workload.yaml import load_workload

    job = load_workload(workload)
    cut = layout_from(layout, job)[0] if layout else next(iter(layouts_of(job).values()))
    until = Until.END if rung == "full" else Until.SCHEDULE
    trace, answer = simulated(cut, job, steps=steps, until=until, timeout_s=timeout)
    write_result(packed(trace, output), output, force=force)
    typer.echo(simulated_text(cut, answer, output, steps), err=True)
