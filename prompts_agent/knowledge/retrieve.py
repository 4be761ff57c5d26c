"""Retrieval as a function: filter by what applies, rank, fuse (`prompts_agent.knowledge.base`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prompts_agent.errors import InputError
from prompts_agent.knowledge.base import KnowledgeBase
from prompts_agent.knowledge.evidence import Evidence
from prompts_agent.knowledge.library import library_digest, load_recipes
from prompts_agent.knowledge.query import Query, unmet
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.store import stored_vectors

__all__ = ["open_base", "retrieve"]

_open: list[tuple[tuple[Recipe, ...], str, KnowledgeBase]] = []
"""Recipes, digest and index of the one knowledge base that this process keeps open: making an
index takes longer than asking it, and a run asks the same recipes again and again."""


def retrieve(
    query: Query,
    k: int = 5,
    recipes: Sequence[Recipe] | None = None,
    extra: Path | None = None,
) -> tuple[Evidence, ...]:
    """At most `k` recipes that apply, best first; fewer where fewer apply, none where none does.

    `recipes` None: those that came with this package and the team's
    (`prompts_agent.knowledge.library.load_recipes`); of equal ids the last counts. Raises
    `InternalError` where Chroma does not start, `RecipeError` for recipes that break the rules.
    """
    if k < 1:
        raise InputError(
            f"k {k}", rule="retrieval returns at least one recipe", cure="Ask for 1 or more."
        )
    pool = load_recipes(extra=extra) if recipes is None else tuple(recipes)
    if all(unmet(recipe, query) for recipe in pool):
        return ()
    return _base(pool).retrieve(query, k)


@contextmanager
def open_base(extra: Path | None = None, server: str | None = None) -> Iterator[KnowledgeBase]:
    """The knowledge base of a run: the shipped recipes or a server's, and the team's in `extra`.

    Raises `RecipeError` for recipes that break the rules, `InputError` for a server that does not
    answer.
    """
    if server is None:
        yield _base(load_recipes(extra=extra))
        return
    from prompts_agent.knowledge.server import ServerBase

    with ServerBase(server, extra=extra) as base:
        yield base


def _base(recipes: tuple[Recipe, ...]) -> KnowledgeBase:
    """Kept open. Vectors come from the index that `kb build` wrote, where it is there."""
    if _open and _open[0][0] is recipes:  # the shipped ones are one tuple for the whole process
        return _open[0][2]
    latest = tuple({recipe.id: recipe for recipe in recipes}.values())
    digest = library_digest(latest)
    if not _open or _open[0][1] != digest:
        while _open:
            _open.pop()[2].__exit__(None, None, None)
        base = KnowledgeBase(latest, vectors=stored_vectors(latest))
        _open.append((recipes, digest, base.__enter__()))
    return _open[0][2]
