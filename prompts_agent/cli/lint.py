"""`prompts lint`: whether the layouts of config files are legal and can fit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from prompts_agent.cli import options

if TYPE_CHECKING:
    from prompts_agent.emit.existing.existing import Fault
    from prompts_agent.emit.existing.lint import Lint

__all__ = ["lint"]


def lint(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Configs: YAML, Python, TOML, or a shell script."),
    ],
    framework: options.Framework = None,
    target: options.Target = None,
    model: options.Model = None,
    batch: options.Batch = None,
    sequence: options.Sequence = None,
    format_name: Annotated[
        Literal["text", "sarif"],
        typer.Option("--format", "-f", help="sarif: for a code-scanning service (docs/ci.md)."),
    ] = "text",
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Faults alone: no notes, nothing unchecked.")
    ] = False,
) -> None:
    """Whether configs' layouts are legal and fit; no framework is loaded and nothing is run.

    Without --model or --target, the config's own are used where it names them. Exit codes: 0 clean,
    1 a fault, 2 wrong input.
    """
    from prompts_agent.emit.existing.check import check_config
    from prompts_agent.report.plain import plain

    checked: list[tuple[Path, Lint]] = []
    for file in files:
        result = check_config(
            file, framework, target=target, model=model, global_batch=batch, sequence=sequence
        )
        if quiet:
            kept = tuple(fault for fault in result.faults if not fault.note)
            result = result.model_copy(update={"faults": kept, "unchecked": ()})
        for fault in result.faults if format_name == "text" else ():
            sys.stdout.write(_text(plain(str(file)), fault, plain))
        for what in result.unchecked:
            sys.stderr.write(f"{plain(str(file))}: not checked: {plain(what)}\n")
        checked.append((file, result))
    if format_name == "sarif":
        from prompts_agent.report.sarif import lint_sarif

        sys.stdout.write(lint_sarif(checked))
    if not all(result.clean for _, result in checked):
        raise typer.Exit(1)
    if not quiet:
        sys.stderr.write(f"{len(files)} file{'s' if len(files) > 1 else ''}: no fault\n")


def _text(file: str, fault: Fault, plain: Callable[[str], str]) -> str:
    """`train.yml:12: 32 heads ÷ tensor 3 leaves 2 [heads]`, and the cure below it."""
    where = f"{file}:{fault.line}" if fault.line else file
    kind = "note: " if fault.note else ""
    return f"{where}: {kind}{plain(fault.text)} [{fault.rule}]\n  cure: {plain(fault.cure)}\n"
