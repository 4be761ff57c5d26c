"""`prompts kb`: check recipes, write their index, score their retrieval, add what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prompts_agent.cli import options
from prompts_agent.cli.compare import Followed, FollowedRank, JobFile, learnt
from prompts_agent.cli.problems import Fault, finish

__all__ = ["add", "build", "check", "evaluate", "show"]


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
    kb_path: options.KbPath = None,
    kb: Annotated[
        str | None,
        typer.Option(
            "--kb",
            metavar="URL",
            help="Fill this Chroma server instead; a team's recipes are not sent.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the index of the recipes, which later runs use; print where it lies."""
    from prompts_agent.cli.output import write_result

    if kb is not None:
        from prompts_agent.knowledge.server import publish

        write_result(f"{publish(kb)} recipes on {kb}\n", None, force=False)
        return
    from prompts_agent.knowledge.library import load_recipes
    from prompts_agent.knowledge.store import build as build_index
    from prompts_agent.resources import data_directory

    shipped, pool = load_recipes(data_directory("knowledge_base")), load_recipes(extra=kb_path)
    place = build_index(shipped, directory)
    if pool != shipped:  # a team's recipes are indexed for its own runs, and for no server
        build_index(pool, directory, for_server=False)
    write_result(f"{place}\n", None, force=False)


def evaluate(
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="A YAML file of questions and answers.")
    ],
    kb_path: options.KbPath = None,
    kb: options.Kb = None,
) -> None:
    """Score retrieval on questions: recall, MRR and nDCG of each way of ranking."""
    from prompts_agent.cli.output import write_result
    from prompts_agent.knowledge.retrieve import open_base
    from prompts_agent.knowledge.score import evaluate as score
    from prompts_agent.knowledge.score import load_questions, render

    asked = load_questions(questions)
    with open_base(kb_path, kb) as base:
        recipes = base.recipes
    parts = dict.fromkeys(question.part for question in asked)
    found = {part: score([q for q in asked if q.part == part], recipes) for part in parts}
    write_result(render(found | {"all": score(asked, recipes)}), None, force=False)


def show(
    recipe: Annotated[str, typer.Argument(metavar="ID", help="What a report cites as [r:ID].")],
    kb_path: options.KbPath = None,
    kb: options.Kb = None,
) -> None:
    """A recipe: when it applies, what to change, why it works, and its sources."""
    from prompts_agent.cli.output import write_result
    from prompts_agent.knowledge.library import find_recipe
    from prompts_agent.knowledge.recipe_text import recipe_text
    from prompts_agent.knowledge.retrieve import open_base

    with open_base(kb_path, kb) as base:
        found = find_recipe(recipe.removeprefix("r:"), base.recipes)
    write_result(recipe_text(found), None, force=False)


def add(
    traces: Annotated[
        tuple[Path, Path],
        typer.Option(
            "--from", metavar="BEFORE AFTER", help="Two traces of one job.", show_default=False
        ),
    ],
    proposal: Followed = None,
    rank: FollowedRank = None,
    workload: JobFile = None,
    change: Annotated[
        str | None,
        typer.Option(
            "--change",
            metavar="TEXT",
            help="What was changed, in a line; needed where the mesh is the same.",
            show_default=False,
        ),
    ] = None,
    kb_path: options.KbPath = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write it without asking.")] = False,
) -> None:
    """Make a recipe of what two traces measured, and add it to your team's.

    It holds no paths, hosts, users or names from the traces, and is shown before it is written.
    """
    from prompts_agent.cli.confirm import confirmed
    from prompts_agent.knowledge.recipe_text import add_recipe, recipe_text, team_folder

    place = team_folder(kb_path)
    recipe = learnt(traces, proposal, rank, workload, change)
    if confirmed(recipe_text(recipe), f"Write {place / recipe.id}.md?", yes=yes):
        typer.echo(f"written: {add_recipe(recipe, place)}")
