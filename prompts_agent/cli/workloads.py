"""`prompts workloads check`: whether workload files keep their rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prompts_agent.cli.problems import Fault, finish

__all__ = ["check"]


def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Workload files. Default: those that came with prompts.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check files; exit code 2 for a fault."""
    from prompts_agent.errors import PromptsError
    from prompts_agent.resources import data_directory
    from prompts_agent.workload.yaml import load_workload

    paths = files or sorted(data_directory("workloads").rglob("*.yaml"))
    faults = []
    for path in paths:
        try:
            load_workload(path)
        except PromptsError as error:
            faults.append(Fault(str(path), error.value, error.rule, error.cure))
    finish(faults, f"{len(paths)} workload files")
