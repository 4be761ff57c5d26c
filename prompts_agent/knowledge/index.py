"""The dense index: recipes as vectors in an in-memory Chroma collection, one collection a run.

Embedded Chroma keeps its files open for one process alone (a second one may wait for minutes or
damage them), so no run opens an index on disk: vectors are made, or read from a built store
(`prompts_agent.knowledge.store`), and put into a collection in this process's memory.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from prompts_agent.errors import InternalError
from prompts_agent.knowledge.query import Query, unmet
from prompts_agent.knowledge.recipe import ANY, LIMITS, Recipe
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.workload.workload import Phase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Dense", "Index", "configuration", "document", "metadata", "where"]

_UNBOUNDED = 2**62
"""Upper bound of a recipe without one; Chroma's integers have 64 bits, and a key has to be there
to be compared."""

_runs = itertools.count()


class Dense(Protocol):
    """Whatever ranks recipes by vectors: in memory, or a server's collection."""

    def similarities(self, query: Query) -> dict[str, float]:
        """Recipe id → cosine similarity to the query's words, of the recipes that apply."""


class Index:
    """A Chroma collection that holds one vector a recipe. Use as a context manager.

    Chroma's in-memory client is one per process, so collections carry the process id and a counter
    in their names and are deleted on exit. Nothing is written to disk and nothing is sent. Chroma
    is imported and started by the first query; that raises `InternalError` where it cannot be.
    """

    def __init__(
        self, recipes: Sequence[Recipe], vectors: NDArray[np.float32] | None = None
    ) -> None:
        """`vectors`: one row a recipe, in their order, as `embed` makes them; None: made here.

        Either way a recipe is put into the collection when a query first needs it: of a hundred, a
        run asks for a dozen.
        """
        self._recipes = tuple(recipes)
        self._place = {recipe.id: place for place, recipe in enumerate(self._recipes)}
        self._vectors = vectors
        self._waiting = {recipe.id: recipe for recipe in self._recipes}
        self._name = f"recipes-{os.getpid()}-{next(_runs)}"
        self._client: Any = None
        self._collection: Any = None

    def __enter__(self) -> Self:
        return self

    def _start(self) -> None:
        from prompts_agent.knowledge.embed import EMBEDDER

        self._client = _client()
        self._collection = self._client.create_collection(
            self._name,
            embedding_function=None,  # else Chroma would download a model at the first query
            metadata={"embedder": EMBEDDER},
            configuration=configuration(len(self._recipes)),
        )

    def _add(self, recipes: Sequence[Recipe]) -> None:
        if not recipes:
            return
        if self._collection is None:
            self._start()
        self._collection.add(
            ids=[recipe.id for recipe in recipes],
            embeddings=self._rows(recipes),
            metadatas=[metadata(recipe) for recipe in recipes],
        )
        for recipe in recipes:
            del self._waiting[recipe.id]

    def _rows(self, recipes: Sequence[Recipe]) -> NDArray[np.float32]:
        from prompts_agent.knowledge.embed import embed

        if self._vectors is None:
            return embed([document(recipe) for recipe in recipes])
        return self._vectors[[self._place[recipe.id] for recipe in recipes]]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._collection is not None:
            self._client.delete_collection(self._name)
            self._collection = None

    def similarities(self, query: Query) -> dict[str, float]:
        """Recipe id → cosine similarity to the query's words, of the recipes that apply."""
        from prompts_agent.knowledge.embed import embed

        self._add([recipe for recipe in self._waiting.values() if not unmet(recipe, query)])
        if len(self._waiting) == len(self._recipes):
            return {}
        answer = self._collection.query(
            query_embeddings=embed([query.words]),
            n_results=len(self._recipes) - len(self._waiting),
            where=where(query),
            include=["distances"],
        )
        distances = (float(distance) for distance in answer["distances"][0])
        return {
            key: 1 - distance for key, distance in zip(answer["ids"][0], distances, strict=True)
        }


def configuration(recipes: int) -> dict[str, Any]:
    """Of a collection: as many neighbours as recipes make the search exact and repeatable."""
    return {"hnsw": {"space": "cosine", "ef_search": max(100, recipes)}}


def document(recipe: Recipe) -> str:
    """What both rankings read of a recipe; the title twice, because it says what it is about, and
    not the section on when it does not work: words shared with that speak against it.

    Raise `prompts_agent.knowledge.store`'s format with any change here.
    """
    moves = [str(move) for move in (*recipe.changes, *recipe.knobs)]
    parts = (
        recipe.id,
        recipe.title,
        recipe.title,
        *recipe.applies.findings,
        *moves,
        *(text for title, text in recipe.sections.items() if title != LIMITS),
        recipe.costs,
    )
    return "\n".join(parts)


def metadata(recipe: Recipe) -> dict[str, list[str] | int | bool]:
    """The conditions of a recipe, as Chroma stores them."""
    applies = recipe.applies
    return {
        "phases": _plain(applies.phases),
        "chips": _plain(applies.chips),
        "architectures": _plain(applies.architectures),
        "findings": _plain(applies.findings),
        "axes": _plain(applies.axes),
        "objectives": _plain(applies.objectives),
        "min_devices": applies.min_devices or 0,
        "max_devices": applies.max_devices or _UNBOUNDED,
        "min_sequence": applies.min_sequence or 0,
        "max_sequence": applies.max_sequence or _UNBOUNDED,
        "sharding": recipe.sharding,
    }


def _plain(values: Sequence[str]) -> list[str]:
    """Enum members as the strings they are; Chroma checks for `str` itself."""
    return [str(value) for value in values]


def where(query: Query) -> dict[str, Any]:
    """Chroma's filter for the recipes that apply: the same as `unmet(recipe, query) == ()`."""
    phases = tuple(Phase) if query.phase is None else (query.phase,)
    conditions: list[dict[str, Any]] = [
        *({"phases": {"$contains": phase.value}} for phase in phases),
        _contains_one([("chips", word) for word in query.chip_words]),
        _contains_one([("architectures", word) for word in (ANY, *query.architecture)]),
        {"objectives": {"$contains": query.objective.value}},
        *_bounds("devices", query.devices),
        *_bounds("sequence", query.sequence),
        _contains_one([("findings", kind) for kind in query.findings])
        if query.findings
        else {"sharding": True},
    ]
    if query.axes and FindingKind.EXPOSED_COLLECTIVE in query.findings:
        others = set(query.findings) - {FindingKind.EXPOSED_COLLECTIVE}
        choices = [("axes", axis) for axis in (ANY, *query.axes)]
        conditions.append(_contains_one(choices + [("findings", kind) for kind in sorted(others)]))
    return {"$and": conditions}


def _contains_one(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """At least one of the lists (first of a pair) contains its word (second)."""
    choices = [{key: {"$contains": str(word)}} for key, word in dict.fromkeys(pairs)]
    return choices[0] if len(choices) == 1 else {"$or": choices}


def _bounds(what: str, value: int | None) -> list[dict[str, Any]]:
    if value is None:
        return [{f"min_{what}": {"$eq": 0}}, {f"max_{what}": {"$eq": _UNBOUNDED}}]
    return [{f"min_{what}": {"$lte": value}}, {f"max_{what}": {"$gte": value}}]


def _client() -> Any:
    try:
        import chromadb
        from chromadb.config import Settings

        return chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    # Chroma's native part raises types of its own, and any of them means the same to us.
    except Exception as error:
        raise InternalError(
            f"chromadb ({type(error).__name__}: {error})",
            rule="the in-memory index of the knowledge base did not start",
            cure="Reinstall it (`pip install --force-reinstall 'chromadb>=1.5,<2'`); in a process "
            "that uses Chroma itself, give its client `Settings(anonymized_telemetry=False)`.",
        ) from error
