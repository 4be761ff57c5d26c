"""Checks of a whole knowledge base, for people who edit it and for CI."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TypeVar

from prompts_agent.errors import RecipeError
from prompts_agent.knowledge.check_text import text_faults
from prompts_agent.knowledge.library import recipe_paths
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.recipe_file import read_recipe
from prompts_agent.knowledge.words import words
from prompts_agent.record import Record

__all__ = ["SIMILAR", "SIMILAR_TITLE", "Problem", "check"]

SIMILAR = 0.5
"""Shared runs of four words ÷ all of both bodies. Recipes on neighbouring themes stay below 0.1;
a copied recipe with a few words changed is above."""
SIMILAR_TITLE = 0.8
"""Shared words ÷ all of both titles."""

_Feature = TypeVar("_Feature", bound=Hashable)
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

    Schema and ranges (the first fault of each file), addresses, links to recipes that are not
    there, units and shares, numbers without a chip, titles and bodies that are nearly the same,
    files that no reader will see. Raises `RecipeError` only where `directory` is none.
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
    problems += _texts(recipes)
    problems += _alike(recipes)
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


def _texts(recipes: dict[Path, Recipe]) -> Iterator[Problem]:
    for path, recipe in recipes.items():
        for value, rule, cure in text_faults(recipe):
            yield _problem(path, f"{path}: {value}", rule, cure)


def _alike(recipes: dict[Path, Recipe]) -> Iterator[Problem]:
    """Pairs of titles or bodies that are nearly the same; the first of a pair gets the blame.

    Cases that were measured here are written by one template, so they are alike and not checked.
    """
    recipes = {path: recipe for path, recipe in recipes.items() if not recipe.measured_here}
    titles = {path: set(words(recipe.title)) for path, recipe in recipes.items()}
    for (path, other), likeness in _likeness(titles).items():
        if likeness >= SIMILAR_TITLE:
            yield _problem(
                path,
                f"{path}: title {recipes[path].title!r}",
                "two recipes have it"
                if recipes[path].title == recipes[other].title
                else "another recipe's title is much like it",
                f"See {other.name}.",
            )
    bodies = {path: _runs(recipe.body) for path, recipe in recipes.items()}
    for (path, other), likeness in _likeness(bodies).items():
        if likeness >= SIMILAR:
            yield _problem(
                path,
                f"{path}: {likeness:.0%} the same as {other.name}",
                f"bodies share less than {SIMILAR:.0%} of their runs of {_RUN} words",
                "Merge the two, or say what differs.",
            )


def _likeness(features: dict[Path, set[_Feature]]) -> dict[tuple[Path, Path], float]:
    """Jaccard index of every pair that shares anything; via the features, not pair by pair."""
    having: dict[_Feature, list[Path]] = defaultdict(list)
    for path, found in features.items():
        for feature in found:
            having[feature].append(path)
    shared: Counter[tuple[Path, Path]] = Counter()
    for paths in having.values():
        for place, path in enumerate(paths):
            shared.update((path, other) for other in paths[place + 1 :])
    return {
        (one, other): count / (len(features[one]) + len(features[other]) - count)
        for (one, other), count in shared.items()
    }


def _runs(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {found[start : start + _RUN] for start in range(len(found) - _RUN + 1)}
