"""`prompts verify`: whether XLA's own compiler accepts a layout, with no chip attached."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from prompts_agent.cli import options
from prompts_agent.cli.output import check_output, write_result

__all__ = ["verify"]

What = Annotated[
    str | None,
    typer.Argument(
        metavar="WORKLOAD|REPORT|LAYOUT",
        help="A workload file, a stored report (each proposal), or fsdp=16,tensor=4 with "
        "--workload.",
        show_default=False,
    ),
]
Layouts = Annotated[
    list[str] | None,
    typer.Option(
        "--layout",
        "-l",
        metavar="AXES",
        help="fsdp=16,tensor=4,remat=full; may be repeated. Default: those the file names.",
        show_default=False,
    ),
]
Job = Annotated[
    Path | None,
    typer.Option("--workload", metavar="FILE", help="The job that a layout is for."),
]
Function = Annotated[
    str | None,
    typer.Option(
        "--fn",
        metavar="MODULE:STEP",
        help="A JAX function of your own in place of the reference program; with --args and "
        "--target.",
        show_default=False,
    ),
]
Arguments = Annotated[
    str | None,
    typer.Option(
        "--args",
        metavar="MODULE:ARGS",
        help="Its abstract arguments: a tuple of jax.ShapeDtypeStruct, or a function that "
        "returns one; a function of one argument is given the devices.",
        show_default=False,
    ),
]
Flags = Annotated[
    Path | None,
    typer.Option(
        "--flags",
        metavar="FILE",
        help="Compiler flags to lint: which does the compiler for --target refuse or ignore.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", metavar="TOPOLOGY", help="For --fn and --flags: v5e:16x16."),
]
Rung = Annotated[
    Literal["fit", "full"],
    typer.Option(
        "--rung",
        help="fit: memory, in seconds. full: the whole compile, in minutes: collectives, loops "
        "and a step's time too.",
    ),
]
FormatName = Annotated[
    Literal["text", "json"], typer.Option("--format", "-f", help="How to print the answers.")
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Compiles at a time.")]
Timeout = Annotated[
    float, typer.Option("--timeout", min=1.0, metavar="SECONDS", help="Of one compile.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Compile again.")]


def verify(
    what: What = None,
    layout: Layouts = None,
    workload: Job = None,
    function: Function = None,
    arguments: Arguments = None,
    flags: Flags = None,
    target: Target = None,
    rung: Rung = "fit",
    format_name: FormatName = "text",
    output: options.Output = None,
    force: options.Force = False,
    workers: Workers = 2,
    timeout: Timeout = 600.0,
    no_cache: NoCache = False,
) -> None:
    """Whether layouts compile and fit, by XLA's own compiler, with no chip attached.

    Exit codes: 0 asked and answered, 2 wrong input, 3 the compiler gave no answer; with --flags, 1
    where it refuses one.
    """
    check_output(output, force=force)
    from prompts_agent.compile.request import Until
    from prompts_agent.report.verify_answers import (
        flags_answer,
        function_answer,
        layouts_answer,
        one_question,
    )

    asked = one_question(what, function, flags)
    until = Until.END if rung == "full" else Until.MEMORY
    as_json = format_name == "json"
    if asked == "flags":
        answer = flags_answer(flags, target, what, as_json=as_json)
    elif asked == "fn":
        answer = function_answer(
            function, arguments, target, what, until=until, timeout_s=timeout, as_json=as_json
        )
    else:
        answer = layouts_answer(
            what,
            workload=workload,
            layouts=layout or (),
            until=until,
            workers=workers,
            timeout_s=timeout,
            use_cache=not no_cache,
            as_json=as_json,
        )
    write_result(answer.text, output, force=force)
    if answer.exit_code:
        raise typer.Exit(answer.exit_code)
