"""How well retrieval finds what an expert would hand over: questions, and four ways to rank.

A question is a query (a workload and what was found in its trace) with the ids of the recipes that
an expert would want. The ways:

- `lexical`: BM25 over all recipes;
- `dense`: cosine similarity of the vectors over all recipes;
- `fused`: both, by reciprocal ranks;
- `filter+fused`: what `prompts` does: recipes that apply, ranked by findings, words and
  similarity (`prompts_agent.knowledge.base`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from prompts_agent.errors import InputError
from prompts_agent.knowledge.base import WEIGHTS, KnowledgeBase
from prompts_agent.knowledge.fuse import fuse, ranks
from prompts_agent.knowledge.index import document
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.record import Record

__all__ = [
    "CUTOFF",
    "WAYS",
    "Question",
    "Scores",
    "evaluate",
    "load_questions",
    "orders",
    "render",
    "scores",
]

CUTOFF = 5
WAYS = ("lexical", "dense", "fused", "filter+fused")

Embedder = Callable[[Sequence[str]], Any]
"""Texts → rows of length 1."""


class Question(Record):
    """What is known of a job, and the recipes that an expert would want for it."""

    id: str
    part: Literal["tune", "second", "fresh"]
    """Weights are chosen on `tune`; the others are only scored, `fresh` once."""
    source: str
    """Public address of the thread, paper or page that the question was taken from."""
    ask: Query
    wants: tuple[str, ...] = Field(min_length=1, max_length=4)


class Scores(Record):
    """Means over questions, each between 0 and 1."""

    questions: int
    recall_at_5: float
    """Share of the wanted recipes that are among the first five."""
    mrr: float
    """1 ÷ rank of the first wanted recipe; 0 where none is found."""
    ndcg_at_5: float
    """Discounted gain of the wanted among the first five ÷ that of the best order."""


def load_questions(path: Path) -> tuple[Question, ...]:
    """The questions of a YAML file, a list. Raises `InputError`."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        found = tuple(Question.model_validate(item) for item in data)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError, ValidationError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            str(path),
            rule=f"is no list of questions ({reason})",
            cure="Each has id, part, source, ask and wants.",
        ) from None
    if not found or len({question.id for question in found}) < len(found):
        raise InputError(
            str(path), rule="holds questions with different ids", cure="Add or rename questions."
        )
    return found


def evaluate(
    questions: Sequence[Question],
    recipes: Sequence[Recipe],
    *,
    weights: Mapping[str, int] = WEIGHTS,
    embedder: Embedder | None = None,
) -> dict[str, Scores]:
    """Way → scores. Raises `InputError` where a question wants a recipe that is not there."""
    known = {recipe.id for recipe in recipes}
    for question in questions:
        missing = sorted(set(question.wants) - known)
        if missing:
            raise InputError(
                f"question {question.id}: {missing[0]!r}",
                rule="there is no such recipe",
                cure="Correct the id or drop it.",
            )
    ranked = orders(questions, recipes, weights=weights, embedder=embedder)
    wanted = [question.wants for question in questions]
    return {way: scores(ranked[way], wanted) for way in WAYS}


def orders(
    questions: Sequence[Question],
    recipes: Sequence[Recipe],
    *,
    weights: Mapping[str, int] = WEIGHTS,
    embedder: Embedder | None = None,
) -> dict[str, list[list[str]]]:
    """Way → for each question the ids, best first. `embedder` None: the one of this package."""
    from prompts_agent.knowledge.embed import embed

    make = embed if embedder is None else embedder
    rows = make([document(recipe) for recipe in recipes])
    found: dict[str, list[list[str]]] = {way: [] for way in WAYS}
    cosines = _Cosines([recipe.id for recipe in recipes], rows, make)
    base = KnowledgeBase(recipes, dense=cosines)
    for question in questions:
        lexical = base.lexical(question.ask)
        dense = cosines.similarities(question.ask)
        both = fuse([ranks(lexical), ranks({key: 1 + dense[key] for key in dense})])
        found["lexical"].append(_order(lexical))
        found["dense"].append(_order(dense))
        found["fused"].append(list(both))
        found["filter+fused"].append(list(base.order(base.rankings(question.ask), weights)))
    return found


def scores(ranked: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> Scores:
    """Means over pairs of an order and what was wanted of it."""
    pairs = list(zip(ranked, wanted, strict=True))
    return Scores(
        questions=len(pairs),
        recall_at_5=_mean([_recall(order, want) for order, want in pairs]),
        mrr=_mean([_reciprocal(order, want) for order, want in pairs]),
        ndcg_at_5=_mean([_ndcg(order, want) for order, want in pairs]),
    )


class _Cosines:
    """A dense index without a filter, for any embedder."""

    def __init__(self, ids: Sequence[str], rows: Any, make: Embedder) -> None:
        self._ids = ids
        self._rows = rows
        self._make = make

    def similarities(self, query: Query) -> dict[str, float]:
        values = self._rows @ self._make([query.words])[0]
        return dict(zip(self._ids, map(float, values), strict=True))


def _order(score: Mapping[str, float]) -> list[str]:
    return sorted(score, key=lambda key: (-score[key], key))


def _recall(order: Sequence[str], wanted: Sequence[str]) -> float:
    return len(set(order[:CUTOFF]) & set(wanted)) / len(wanted)


def _reciprocal(order: Sequence[str], wanted: Sequence[str]) -> float:
    return next((1 / rank for rank, key in enumerate(order, 1) if key in wanted), 0.0)


def _ndcg(order: Sequence[str], wanted: Sequence[str]) -> float:
    gain = sum(
        1 / math.log2(rank + 1) for rank, key in enumerate(order[:CUTOFF], 1) if key in wanted
    )
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(wanted), CUTOFF) + 1))
    return gain / best


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def render(results: Mapping[str, Mapping[str, Scores]]) -> str:
    """A table of text: name of the set of questions → way → scores."""
    lines = [f"{'questions':10} {'n':>4}  {'way':14} {'recall@5':>8} {'MRR':>6} {'nDCG@5':>7}"]
    for name, ways in results.items():
        for way, score in ways.items():
            figures = f"{score.recall_at_5:8.3f} {score.mrr:6.3f} {score.ndcg_at_5:7.3f}"
            lines.append(f"{name:10} {score.questions:4}  {way:14} {figures}")
    return "\n".join(lines) + "\n"
