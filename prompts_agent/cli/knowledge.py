"""`prompts kb check`: whether the recipes keep their rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prompts_agent.cli.problems import Fault, finish

__all__ = ["check"]


def check(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="A directory of recipes. Default: the one that came with prompts.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check recipes; exit code 2 for a fault."""
    from prompts_agent.knowledge.check import check as check_recipes
    from prompts_agent.resources import data_directory

    place = directory if directory is not None else data_directory("knowledge_base")
    faults = [Fault(p.file, p.value, p.rule, p.cure) for p in check_recipes(place)]
    finish(faults, f"recipes in {place}")
