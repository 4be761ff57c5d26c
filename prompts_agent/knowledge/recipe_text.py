"""Recipe → the Markdown file that reads back as the same recipe, and where a team keeps it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from prompts_agent.errors import OutputError, RecipeError
from prompts_agent.knowledge.library import TEAM_VARIABLE, load_recipes, team_directory
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.recipe_file import parse_recipe
from prompts_agent.resources import data_directory

__all__ = ["add_recipe", "recipe_text", "team_folder"]


def team_folder(extra: Path | None = None) -> Path:
    """Where a team's recipe is written: `extra`, else `PROMPTS_KB`.

    The directory that came with this package is meant only where `extra` names it. Raises
    `RecipeError` where no directory is given.
    """
    place = team_directory(extra)
    if place is None:
        raise RecipeError(
            "no directory for the recipe",
            rule="what was measured here is kept with your team's recipes",
            cure=f"Name their directory with --kb-path DIR or {TEAM_VARIABLE}.",
        )
    if extra is None and place.resolve() == data_directory("knowledge_base").resolve():
        raise RecipeError(
            f"{TEAM_VARIABLE}={place}",
            rule="that is the directory of the recipes that came with this package",
            cure="Name your team's own, or this one with --kb-path if it is meant.",
        )
    return place


def recipe_text(recipe: Recipe) -> str:
    """Front matter with every key that is not at its default, and the body. Raises `RecipeError`
    where the text would not read back as this recipe.
    """
    data: dict[str, Any] = recipe.model_dump(mode="json", exclude={"body"}, exclude_defaults=True)
    front = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    body = recipe.body.strip()
    text = f"---\n{front}---\n{body}\n"
    if parse_recipe(text, recipe.id) != recipe.model_copy(update={"body": body}):
        raise RecipeError(
            f"recipe {recipe.id!r}",
            rule="its text does not read back as it was",
            cure="Take odd characters and surrounding blanks out of it.",
        )
    return text


def add_recipe(recipe: Recipe, directory: Path) -> Path:
    """Writes `<id>.md` into `directory`, whole or not at all; the file's path.

    Raises `RecipeError` where a recipe of that id is there or came with this package, and
    `OutputError` where the directory cannot be written. Never replaces a file.
    """
    path = directory / f"{recipe.id}.md"
    if recipe.id in {shipped.id for shipped in load_recipes(data_directory("knowledge_base"))}:
        raise _there(recipe, "in the knowledge base that came with this package")
    text = recipe_text(recipe)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write_new(path, text)
    except FileExistsError:
        if directory.is_dir():
            raise _there(recipe, str(path)) from None
        raise OutputError(
            str(directory), rule="is no directory", cure="Give another one."
        ) from None
    except OSError as error:
        raise OutputError(
            str(path),
            rule=f"cannot be written ({error.strerror or error})",
            cure="Give a directory that can be, with --kb-path or PROMPTS_KB.",
        ) from error
    return path


def _there(recipe: Recipe, where: str) -> RecipeError:
    return RecipeError(
        f"recipe {recipe.id!r}",
        rule=f"is there already: {where}",
        cure="It is left as it is; delete that file first if this one is to take its place.",
    )


def _write_new(path: Path, text: str) -> None:
    """Raises FileExistsError where `path` is taken."""
    descriptor, name = tempfile.mkstemp(prefix=".adding-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        try:
            os.link(temporary, path)  # fails where the name is taken; a rename would replace
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    finally:
        temporary.unlink(missing_ok=True)
