"""`prompts verify`: whether XLA's own compiler accepts a layout, with no chip attached."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output, write_result

__all__ = ["verify"]


def verify(
    workload: Annotated[Path, typer.Argument(metavar="WORKLOAD.yaml", help="A workload file.")],
    layout: Annotated[
        list[str] | None,
        typer.Option(
            "--layout",
            "-l",
            metavar="AXES",
            help="fsdp=16,tensor=4,remat=full; may be repeated. Default: those the file names.",
            show_default=False,
        ),
    ] = None,
    rung: Annotated[
        Literal["fit", "full"],
        typer.Option(
            "--rung",
            help="fit: memory, in seconds. full: the whole compile, in minutes: collectives, loops "
            "and a step's time too.",
        ),
    ] = "fit",
    format_name: Annotated[
        Literal["text", "json"], typer.Option("--format", "-f", help="How to print the answers.")
    ] = "text",
    output: options.Output = None,
    force: options.Force = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Compiles at a time.")] = 2,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1.0, metavar="SECONDS", help="Of one compile.")
    ] = 600.0,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Compile again.")] = False,
) -> None:
    """Whether layouts compile and fit, by XLA's own compiler, with no chip attached.

    Exit codes: 0 asked and answered, 2 wrong input, 3 the compiler gave no answer.
    """
    check_output(output, force=force)
    from prompts_agent.compile.against import gaps
    from prompts_agent.compile.fit import fit_many
    from prompts_agent.compile.given import layout_from, layouts_of
    from prompts_agent.compile.request import Until
    from prompts_agent.compile.text import as_json, as_text
    from prompts_agent.workload.yaml import load_workload

    job = load_workload(workload)
    named = {text: layout_from(text, job)[0] for text in layout or ()} or layouts_of(job)
    found = fit_many(
        [(cut, job) for cut in named.values()],
        workers=workers,
        timeout_s=timeout,
        use_cache=not no_cache,
        until=Until.END if rung == "full" else Until.MEMORY,
    )
    rows = [
        (name, cut, one, gaps(one, cut, job))
        for (name, cut), one in zip(named.items(), found, strict=True)
    ]
    text = as_json(rows) if format_name == "json" else "\n".join(as_text(*row) for row in rows)
    write_result(text, output, force=force)
    if all(one.fits is None for one in found):
        raise typer.Exit(3)
