"""Checks of a whole knowledge base, for people who edit it and for CI."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from prompts_agent.errors import RecipeError
from prompts_agent.knowledge.library import recipe_paths
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.recipe_file import read_recipe
from prompts_agent.knowledge.words import words
from prompts_agent.record import Record

__all__ = ["SIMILAR", "Problem", "check"]

SIMILAR = 0.5
"""Shared runs of four words ÷ all of both bodies. Recipes on neighbouring themes stay below 0.05;
a copied recipe with a few words changed is above."""

_RUN = 4
_LINK = re.compile(r"\]\(([^)\s]+)\)")


class Problem(Record):
    """One fault: the file, what was seen, the rule it breaks, the cure."""

    file: str
    value: str
    rule: str
    cure: str

    def __str__(self) -> str:
        return f"{self.value}: {self.rule}. {self.cure}"


def check(directory: Path) -> list[Problem]:
    """Every problem of the recipes in `directory`, by file name; empty: all is well.

    Schema (the first fault of each file), equal titles, links to recipes that are not there,
    bodies that are nearly the same, files that no reader will see. Raises `RecipeError` only where
    `directory` is none.
    """
    recipes: dict[Path, Recipe] = {}
    problems: list[Problem] = []
    for path in recipe_paths(directory):
        try:
            recipes[path] = read_recipe(path)
        except RecipeError as error:
            problems.append(_problem(path, error.value, error.rule, error.cure))
    problems += _stray(directory)
    problems += _dead_links(recipes)
    for (path, one), (_, other) in itertools.combinations(recipes.items(), 2):
        problems += _too_alike(path, one, other)
    return sorted(problems, key=lambda problem: (problem.file, problem.value))


def _problem(path: Path, value: str, rule: str, cure: str) -> Problem:
    return Problem(file=path.name, value=value, rule=rule, cure=cure)


def _stray(directory: Path) -> Iterator[Problem]:
    known = {*recipe_paths(directory), directory / "README.md"}
    for path in sorted(directory.iterdir()):
        if path not in known and not path.name.startswith("."):
            yield _problem(
                path,
                str(path),
                "only *.md files directly in the directory are read",
                "Move it out, or rename it to <id>.md.",
            )


def _dead_links(recipes: dict[Path, Recipe]) -> Iterator[Problem]:
    ids = {recipe.id for recipe in recipes.values()}
    for path, recipe in recipes.items():
        for target in _LINK.findall(recipe.body):
            if not target.startswith("https://") and target.removesuffix(".md") not in ids:
                yield _problem(
                    path,
                    f"{path}: link to {target!r}",
                    "a link leads to an https address or to <id>.md of another recipe",
                    "Correct or drop the link.",
                )


def _too_alike(path: Path, one: Recipe, other: Recipe) -> Iterator[Problem]:
    if one.title == other.title:
        yield _problem(
            path, f"{path}: title {one.title!r}", "two recipes have it", f"See {other.id}.md."
        )
    likeness = _likeness(one.body, other.body)
    if likeness >= SIMILAR:
        yield _problem(
            path,
            f"{path}: {likeness:.0%} the same as {other.id}.md",
            f"bodies share less than {SIMILAR:.0%} of their runs of {_RUN} words",
            "Merge the two, or say what differs.",
        )


def _likeness(one: str, other: str) -> float:
    """Jaccard index of the runs of `_RUN` words."""
    first, second = _runs(one), _runs(other)
    return len(first & second) / len(first | second) if first | second else 0.0


def _runs(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {found[start : start + _RUN] for start in range(len(found) - _RUN + 1)}
