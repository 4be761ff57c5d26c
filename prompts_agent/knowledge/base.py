"""KnowledgeBase: recipes, loaded and indexed once, asked many times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from prompts_agent.errors import InputError
from prompts_agent.knowledge.evidence import Evidence
from prompts_agent.knowledge.fuse import fuse, ranks
from prompts_agent.knowledge.index import Dense, Index, document
from prompts_agent.knowledge.lexical import Bm25
from prompts_agent.knowledge.query import Query, matched, unmet
from prompts_agent.knowledge.reasons import reasons
from prompts_agent.knowledge.recipe import ANY, Recipe
from prompts_agent.knowledge.words import words
from prompts_agent.workload.workload import Objective, Phase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RANKINGS", "WEIGHTS", "KnowledgeBase"]

RANKINGS = ("findings", "words", "similarity", "own measurements")
OWN_CASES = 2
"""Cases measured here that go before what others measured; more would crowd out the principles."""
WEIGHTS: Mapping[str, int] = {"findings": 2, "words": 1, "similarity": 1, "own measurements": 1}
"""How often each ranking counts. Chosen on one half of the questions in tests/retrieval, where
nothing simpler was better and nothing better was out of its noise."""


class KnowledgeBase:
    """Recipes with BM25 over their words and vectors in Chroma. Use as a context manager.

    Rankings are fused (`prompts_agent.knowledge.fuse`):

    - findings: the i-th of the query's findings and axes that a recipe treats counts 1/i;
    - words: BM25;
    - similarity: cosine of the vectors;
    - own measurements, where there are any: cases measured here, those that treat the costliest
      findings and have the nearest number of devices, at most OWN_CASES.

    Findings count twice: they were measured, while shared words may be chance.
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        dense: Dense | None = None,
        vectors: NDArray[np.float32] | None = None,
    ) -> None:
        """`dense` None: an index in memory, of `vectors` where they were built before (one row a
        recipe). Of equal ids the last recipe counts.
        """
        pool = {recipe.id: recipe for recipe in recipes}
        self.recipes = tuple(pool.values())
        self._documents = tuple(words(document(recipe)) for recipe in self.recipes)
        self._bm25 = Bm25(self._documents)
        self._own = Index(self.recipes, vectors) if dense is None else None
        self._dense = dense

    def __enter__(self) -> Self:
        if self._own is not None:
            self._dense = self._own.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._own is not None:
            self._own.__exit__(kind, error, trace)

    def retrieve(self, query: Query, k: int = 5) -> tuple[Evidence, ...]:
        """At most `k` recipes that apply, best first; fewer where fewer apply."""
        if k < 1:
            raise InputError(
                f"k {k}", rule="retrieval returns at least one recipe", cure="Ask for 1 or more."
            )
        rankings = self.rankings(query)
        ordered = self.order(rankings)
        by_id = {recipe.id: (place, recipe) for place, recipe in enumerate(self.recipes)}
        asked = words(query.words)
        # A copy of a recipe, in a team's directory under another id, would say the same again.
        said = {key: (by_id[key][1].title, by_id[key][1].body) for key in ordered}
        once = {said[key]: key for key in reversed(ordered)}
        found = [item for item in ordered.items() if item[0] in once.values()][:k]
        evidence = []
        for key, score in found:
            place, recipe = by_id[key]
            shared = self._bm25.shared(place, asked)
            evidence.append(
                Evidence(
                    recipe_id=key,
                    title=recipe.title,
                    score=score,
                    source=recipe.citation,
                    reasons=reasons(recipe, query, shared, rankings),
                )
            )
        return tuple(evidence)

    def rankings(self, query: Query) -> dict[str, dict[str, int]]:
        """Name → (id → rank) over the recipes that apply; rankings without any are left out."""
        fitting = {recipe.id: recipe for recipe in self.recipes if not unmet(recipe, query)}
        if not fitting:
            return {}
        lexical = self.lexical(query)
        dense = self.dense(query)
        treated = {key: _findings_score(r, query) for key, r in fitting.items()}
        made = {
            "findings": ranks(treated),
            "words": ranks({key: lexical[key] for key in fitting}),
            # Unrelated vectors have a cosine about 0, on either side; + 1 keeps them ranked.
            "similarity": ranks({key: 1 + dense[key] for key in fitting if key in dense}),
            "own measurements": _own(fitting, treated, query),
        }
        return {name: ranking for name, ranking in made.items() if ranking}

    def order(
        self,
        rankings: Mapping[str, Mapping[str, int]],
        weights: Mapping[str, int] = WEIGHTS,
    ) -> dict[str, float]:
        """Id → fused score, best first; of equal scores the recipe with fewer conditions first.

        A ranking that counts twice goes into the fusion twice.
        """
        fused = fuse([rankings[name] for name in rankings for _ in range(weights.get(name, 0))])
        conditions = {recipe.id: _conditions(recipe) for recipe in self.recipes}
        best_first = sorted(
            fused.items(), key=lambda item: (-item[1], conditions[item[0]], item[0])
        )
        return dict(best_first)

    def lexical(self, query: Query) -> dict[str, float]:
        """Id → BM25 score, of all recipes: weights of words come from the whole pool."""
        scores = self._bm25.scores(words(query.words))
        return {recipe.id: score for recipe, score in zip(self.recipes, scores, strict=True)}

    def dense(self, query: Query) -> dict[str, float]:
        """Id → cosine similarity, of the recipes that apply."""
        return {} if self._dense is None else self._dense.similarities(query)


def _findings_score(recipe: Recipe, query: Query) -> float:
    """Sum of 1/i over the findings it treats, and 1/i for the costliest axis that it names."""
    order = list(dict.fromkeys(query.findings))
    score = sum(1 / (order.index(kind) + 1) for kind in matched(recipe, query))
    named = [place for place, axis in enumerate(query.axes, 1) if axis in recipe.applies.axes]
    return score + (1 / named[0] if named else 0.0)


def _own(
    fitting: Mapping[str, Recipe], treated: Mapping[str, float], query: Query
) -> dict[str, int]:
    """Id → rank of the cases measured here that stand nearest to the query."""

    def distance(key: str) -> tuple[float, float, str]:
        low, high = fitting[key].applies.min_devices, fitting[key].applies.max_devices
        if not (query.devices and low and high):
            return (-treated[key], math.inf, key)
        # A case's bounds lie around its own number of devices, as far below as above.
        return (-treated[key], abs(math.log(query.devices / math.sqrt(low * high))), key)

    own = sorted((key for key, r in fitting.items() if r.measured_here), key=distance)
    return {key: rank for rank, key in enumerate(own[:OWN_CASES], start=1)}


def _conditions(recipe: Recipe) -> int:
    """How many conditions it states: one for each field of `applies` that leaves jobs out."""
    applies = recipe.applies
    return sum(
        (
            len(applies.phases) < len(Phase),
            ANY not in applies.chips,
            ANY not in applies.architectures,
            ANY not in applies.axes,
            len(applies.objectives) < len(Objective),
            applies.min_devices is not None and applies.min_devices > 2,  # 2: any parallel job
            applies.max_devices is not None,
            applies.min_sequence is not None,
            applies.max_sequence is not None,
        )
    )
