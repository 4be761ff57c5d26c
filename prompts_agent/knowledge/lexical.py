"""BM25: which recipes share rare words with a query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

__all__ = ["K1", "B", "Bm25"]

K1 = 1.2
"""How soon a repeated word stops counting."""
B = 0.75
"""How much long documents are discounted. Both are the usual values: Robertson and Zaragoza, "The
Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3.3."""


class Bm25:
    """Okapi BM25 over documents that are already words.

    score(d, q) = sum over distinct words w of q of
        idf(w) * f(w, d) * (K1 + 1) / (f(w, d) + K1 * (1 - B + B * |d| / mean |d|)),
    idf(w) = ln(1 + (N - n(w) + 0.5) / (n(w) + 0.5)), which unlike Robertson's is never negative.
    """

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        self._counts = [Counter(document) for document in documents]
        self._lengths = [len(document) for document in documents]
        self._mean_length = sum(self._lengths) / len(documents) if documents else 0.0
        self._documents_with = Counter(word for counts in self._counts for word in counts)

    def idf(self, word: str) -> float:
        """Weight of `word`: high where few documents have it."""
        having = self._documents_with[word]
        return math.log1p((len(self._counts) - having + 0.5) / (having + 0.5))

    def scores(self, query: Sequence[str]) -> list[float]:
        """One score a document, in their order; 0 where no word is shared."""
        weights = {word: self.idf(word) for word in query if word in self._documents_with}
        return [self._score(index, weights) for index in range(len(self._counts))]

    def shared(self, index: int, query: Sequence[str]) -> tuple[str, ...]:
        """The words that document `index` shares with the query, rarest first."""
        found = {word for word in query if word in self._counts[index]}
        return tuple(sorted(found, key=lambda word: (-self.idf(word), word)))

    def _score(self, index: int, weights: dict[str, float]) -> float:
        if not self._mean_length:
            return 0.0
        counts = self._counts[index]
        damping = K1 * (1 - B + B * self._lengths[index] / self._mean_length)
        return sum(
            idf * counts[word] * (K1 + 1) / (counts[word] + damping)
            for word, idf in weights.items()
            if counts[word]
        )
