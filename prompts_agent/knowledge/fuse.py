"""Reciprocal rank fusion: several rankings → one score, by rank alone.

Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
Learning Methods", SIGIR 2009: score(d) = sum over rankings of 1 / (60 + rank(d)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["RANK_OFFSET", "fuse", "ranks"]

RANK_OFFSET = 60
"""The paper's k, found on four TREC collections; it keeps one first place from deciding alone."""


def ranks(scores: Mapping[str, float], *, digits: int = 6) -> dict[str, int]:
    """Key → rank from 1, best first; equal scores share the better rank, as in sports.

    Scores count to `digits` decimals: the last bits of a float differ between machines. Keys with
    a score of 0 or less are in no ranking.

    >>> ranks({"a": 2.0, "b": 3.0, "c": 2.0, "d": 1.0, "e": 0.0})
    {'b': 1, 'a': 2, 'c': 2, 'd': 4}
    """
    rounded = {key: round(score, digits) for key, score in scores.items()}
    kept = sorted(
        ((key, score) for key, score in rounded.items() if score > 0),
        key=lambda item: (-item[1], item[0]),
    )
    values = [score for _, score in kept]
    return {key: values.index(score) + 1 for key, score in kept}


def fuse(rankings: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """Key → fused score in (0, 1], best first, equal scores by key.

    Divided by what first place in every ranking would give: 1 means first in all of them.

    >>> fuse([{"a": 1}, {"a": 1, "b": 2}])
    {'a': 1.0, 'b': 0.49193548387096775}
    """
    best = len(rankings) / (RANK_OFFSET + 1)
    total: dict[str, float] = {}
    for ranking in rankings:
        for key, rank in ranking.items():
            total[key] = total.get(key, 0.0) + 1 / (RANK_OFFSET + rank)
    # min(): the sum of n equal fractions may exceed n of them by one bit.
    fused = {key: min(score / best, 1.0) for key, score in total.items()}
    return dict(sorted(fused.items(), key=lambda item: (-item[1], item[0])))
