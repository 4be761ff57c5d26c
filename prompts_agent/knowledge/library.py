"""The recipes of a directory, in a fixed order, those of a team beside them, and a hash of both.

A team's recipes are read from a second directory on this machine and stay there: only
`prompts_agent.knowledge.server.publish` sends recipes anywhere, and it leaves them out unless told
otherwise.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

from prompts_agent.errors import RecipeError
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.recipe_file import read_recipe
from prompts_agent.resources import data_directory

__all__ = [
    "TEAM_VARIABLE",
    "find_recipe",
    "leave_out",
    "library_digest",
    "load_recipes",
    "recipe_paths",
    "team_directory",
    "together",
]

TEAM_VARIABLE = "PROMPTS_KB"
"""Environment variable with the directory of a team's recipes."""


def recipe_paths(directory: Path) -> tuple[Path, ...]:
    """`*.md` in `directory`, by name; README.md explains the directory and is no recipe."""
    if not directory.is_dir():
        raise RecipeError(
            f"knowledge base {str(directory)!r}",
            rule="is not a directory",
            cure="Give a directory with one Markdown file a recipe.",
        )
    return tuple(sorted(path for path in directory.glob("*.md") if path.name != "README.md"))


def team_directory(extra: Path | None = None) -> Path | None:
    """Where a team's own recipes lie: `extra`, else `PROMPTS_KB`; None: nowhere."""
    named = os.environ.get(TEAM_VARIABLE, "").strip()
    return extra if extra is not None or not named else Path(named).expanduser()


def load_recipes(directory: Path | None = None, extra: Path | None = None) -> tuple[Recipe, ...]:
    """Every recipe of `directory`, by id; None: those that came with this package, read once, and
    the team's (`team_directory(extra)`). With a directory, a team's only if `extra` names it.

    Raises `RecipeError` at the first file that breaks the schema, and for an id that both have.
    """
    if directory is not None:
        own, team = _read(directory), extra
    else:
        own, team = _shipped(), team_directory(extra)
    return own if team is None else together(own, _read(team), str(team))


def together(
    recipes: Sequence[Recipe], team: Sequence[Recipe], place: str = "the team's recipes"
) -> tuple[Recipe, ...]:
    """Both, by id; a recipe that both have word for word counts once.

    Raises `RecipeError` for two of one id: citations have to name one recipe.
    """
    known = {recipe.id: recipe for recipe in recipes}
    team = [recipe for recipe in team if known.get(recipe.id) != recipe]
    twice = known.keys() & {recipe.id for recipe in team}
    if twice:
        name = min(twice)
        raise RecipeError(
            f"recipe {name!r} in {place}",
            rule="a recipe of that id is in the knowledge base already",
            cure=f"Rename {name}.md and the `id` in it, for example to our-{name}.",
        )
    return tuple(sorted((*recipes, *team), key=lambda recipe: recipe.id))


def leave_out(recipes: Sequence[Recipe], sources: Collection[str]) -> tuple[Recipe, ...]:
    """`recipes` without the cases drawn from any of `sources` (`owner/name`, `arXiv:number`).

    For scoring: a case that was drawn from the workload under test gives its answer away.
    """
    left = {source.casefold() for source in sources}
    return tuple(
        recipe
        for recipe in recipes
        if recipe.drawn_from is None or recipe.drawn_from.source.casefold() not in left
    )


def _read(directory: Path) -> tuple[Recipe, ...]:
    return tuple(read_recipe(path) for path in recipe_paths(directory))


@cache
def _shipped() -> tuple[Recipe, ...]:
    return _read(data_directory("knowledge_base"))


def find_recipe(recipe_id: str, recipes: Sequence[Recipe] | None = None) -> Recipe:
    """The recipe called `recipe_id`, for example an `Evidence.recipe_id`. Raises `RecipeError`."""
    pool = load_recipes() if recipes is None else recipes
    for recipe in pool:
        if recipe.id == recipe_id:
            return recipe
    ids = [recipe.id for recipe in pool]
    near = difflib.get_close_matches(recipe_id, ids, n=3) or ids[:3]
    raise RecipeError(
        f"recipe {recipe_id!r}",
        rule="is not in the knowledge base",
        cure=f"Ids are the names of its files, for example {', '.join(near)}."
        if near
        else "The knowledge base is empty.",
    )


def library_digest(recipes: Sequence[Recipe]) -> str:
    """SHA-256 of everything the recipes say; their order and their files' layout do not count."""
    digest = hashlib.sha256()
    for recipe in sorted(recipes, key=lambda recipe: recipe.id):
        digest.update(recipe.model_dump_json().encode())
        digest.update(b"\n")
    return digest.hexdigest()
