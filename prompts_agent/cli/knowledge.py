"""`prompts kb`: check recipes, write their index, score their retrieval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prompts_agent.cli.problems import Fault, finish

__all__ = ["build", "check", "evaluate"]


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


def build(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            help="Where indexes are kept. Default: prompts/knowledge in the user's cache.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the index of the recipes, for a Chroma server to serve; print where it lies."""
    from prompts_agent.cli.output import write_result
    from prompts_agent.knowledge.library import load_recipes
    from prompts_agent.knowledge.store import build as build_index

    write_result(f"{build_index(load_recipes(), directory)}\n", None, force=False)


def evaluate(
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="A YAML file of questions and answers.")
    ],
) -> None:
    """Score retrieval on questions: recall, MRR and nDCG of each way of ranking."""
    from prompts_agent.cli.output import write_result
    from prompts_agent.knowledge.library import load_recipes
    from prompts_agent.knowledge.score import evaluate as score
    from prompts_agent.knowledge.score import load_questions, render

    asked, recipes = load_questions(questions), load_recipes()
    halves = {half: tuple(q for q in asked if q.half == half) for half in ("tune", "final")}
    found = {half: score(some, recipes) for half, some in halves.items() if some}
    write_result(render(found | {"all": score(asked, recipes)}), None, force=False)
