"""The recipes of a directory, in a fixed order, and a hash of what they say."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from prompts_agent.errors import RecipeError
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.recipe_file import read_recipe
from prompts_agent.resources import data_directory

__all__ = ["find_recipe", "library_digest", "load_recipes", "recipe_paths"]


def recipe_paths(directory: Path) -> tuple[Path, ...]:
    """`*.md` in `directory`, by name; README.md explains the directory and is no recipe."""
    if not directory.is_dir():
        raise RecipeError(
            f"knowledge base {str(directory)!r}",
            rule="is not a directory",
            cure="Give a directory with one Markdown file a recipe.",
        )
    return tuple(sorted(path for path in directory.glob("*.md") if path.name != "README.md"))


def load_recipes(directory: Path | None = None) -> tuple[Recipe, ...]:
    """Every recipe of `directory`, by id; None: those that came with this package, read once.

    Raises `RecipeError` at the first file that breaks the schema.
    """
    if directory is None:
        return _shipped()
    return tuple(read_recipe(path) for path in recipe_paths(directory))


@cache
def _shipped() -> tuple[Recipe, ...]:
    return load_recipes(data_directory("knowledge_base"))


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
