"""Retrieval: filter by what applies, rank by findings, words and vectors, fuse the ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prompts_agent.errors import InputError
from prompts_agent.knowledge.evidence import Evidence
from prompts_agent.knowledge.fuse import fuse, ranks
from prompts_agent.knowledge.index import Index, document
from prompts_agent.knowledge.lexical import Bm25
from prompts_agent.knowledge.library import load_recipes
from prompts_agent.knowledge.query import Query, matched, unmet
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.words import words

__all__ = ["retrieve"]

_SHOWN_WORDS = 5


def retrieve(
    query: Query, k: int = 5, recipes: Sequence[Recipe] | None = None
) -> tuple[Evidence, ...]:
    """At most `k` recipes that apply, best first; fewer where fewer apply, none where none does.

    Three rankings are fused (`prompts_agent.knowledge.fuse`): findings and axes, where the i-th of
    the query's counts 1/i; BM25 over words; cosine similarity in Chroma. Findings count twice: they
    were measured, while shared words may be chance. `recipes` None: those that came with this
    package; of equal ids the last counts. Raises `InternalError` where Chroma does not start.
    """
    if k < 1:
        raise InputError(
            f"k {k}", rule="retrieval returns at least one recipe", cure="Ask for 1 or more."
        )
    pool = {recipe.id: recipe for recipe in (load_recipes() if recipes is None else recipes)}
    fitting = {key: recipe for key, recipe in pool.items() if not unmet(recipe, query)}
    if not fitting:
        return ()
    lexical, shared = _lexical(tuple(pool.values()), query)
    with Index(tuple(pool.values())) as index:
        dense = index.similarities(query)
    rankings = {
        "findings": ranks({key: _findings_score(r, query) for key, r in fitting.items()}),
        "words": ranks({key: lexical[key] for key in fitting}),
        # Unrelated vectors have a cosine about 0, on either side; + 1 keeps them in the ranking.
        "similarity": ranks({key: 1 + dense[key] for key in fitting if key in dense}),
    }
    made = {name: ranking for name, ranking in rankings.items() if ranking}
    fused = fuse([made[name] for name in ("findings", *made) if name in made])
    return tuple(
        Evidence(
            recipe_id=key,
            title=fitting[key].title,
            score=score,
            source=fitting[key].sources[0].url,
            reasons=_reasons(fitting[key], query, shared[key], made),
        )
        for key, score in list(fused.items())[:k]
    )


def _findings_score(recipe: Recipe, query: Query) -> float:
    """Sum of 1/i over the findings it treats, and 1/i for the costliest axis that it names."""
    order = list(dict.fromkeys(query.findings))
    score = sum(1 / (order.index(kind) + 1) for kind in matched(recipe, query))
    named = [place for place, axis in enumerate(query.axes, 1) if axis in recipe.applies.axes]
    return score + (1 / named[0] if named else 0.0)


def _lexical(
    pool: Sequence[Recipe], query: Query
) -> tuple[dict[str, float], dict[str, tuple[str, ...]]]:
    """(id → BM25 score, id → shared words). Weights of words come from the whole pool."""
    asked = words(query.words)
    bm25 = Bm25([words(document(recipe)) for recipe in pool])
    ids = [recipe.id for recipe in pool]
    shared = (bm25.shared(index, asked) for index in range(len(ids)))
    return dict(zip(ids, bm25.scores(asked), strict=True)), dict(zip(ids, shared, strict=True))


def _reasons(
    recipe: Recipe,
    query: Query,
    shared: Sequence[str],
    rankings: Mapping[str, Mapping[str, int]],
) -> tuple[str, ...]:
    findings = matched(recipe, query)
    places = [
        f"{ranking[recipe.id]} by {name}"
        for name, ranking in rankings.items()
        if recipe.id in ranking
    ]
    reasons = [
        f"treats {', '.join(findings)}" if findings else "moves the layout",
        f"applies to {_scope(recipe)}",
        f"shares the words {', '.join(shared[:_SHOWN_WORDS])}" if shared else "",
        f"rank {', '.join(places)}",
    ]
    return tuple(reason for reason in reasons if reason)


def _scope(recipe: Recipe) -> str:
    """The recipe's conditions in words: "decode; any chip; moe; up to 64 devices"."""
    applies = recipe.applies
    parts = [
        ", ".join(applies.phases),
        ", ".join(f"{chip} chip" if chip == "any" else chip for chip in applies.chips),
        ", ".join(f"{kind} model" if kind == "any" else kind for kind in applies.architectures),
        _range("devices", applies.min_devices, applies.max_devices),
        _range("tokens a sequence", applies.min_sequence, applies.max_sequence),
    ]
    return "; ".join(part for part in parts if part)


def _range(what: str, low: int | None, high: int | None) -> str:
    if low is not None and high is not None:
        return f"{low} to {high} {what}"
    if low is not None:
        return f"{low} {what} or more"
    return f"up to {high} {what}" if high is not None else ""
