"""A deterministic embedder: hashed words, word pairs and character n-grams. Downloads nothing.

A sentence model would know that "slow" and "sluggish" are near, but weighs 80 MB, and in a
vocabulary as narrow as "kv heads", "all-gather" and "v5p" shared word parts carry most of it.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prompts_agent.knowledge.words import words

__all__ = ["DIMENSIONS", "EMBEDDER", "embed"]

EMBEDDER = "prompts-hash-512-v1"
"""Name and version. Vectors of different versions do not compare: raise it with any change here."""
DIMENSIONS = 512

_GRAM_SIZES = (3, 4)
_GRAM_WEIGHT = 0.5
"""Of all n-grams of a word together, against 1 for the word itself."""
_PAIR_WEIGHT = 0.5


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """One row a text, shape (len(texts), DIMENSIONS), of length 1; zeros for a text without words.

    A feature is hashed to a dim and a sign, so that collisions cancel on average (Weinberger et
    al., "Feature Hashing for Large Scale Multitask Learning", arXiv 0902.2206).
    """
    rows = np.array([_sums(text) for text in texts], dtype=np.float64).reshape(-1, DIMENSIONS)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _sums(text: str) -> list[float]:
    """The text's features, added up by dim.

    A plain list: thousands of single additions into a row of NumPy take three times as long.
    """
    row = [0.0] * DIMENSIONS
    found = words(text)
    for word, count in Counter(found).items():
        weight = 1 + math.log(count)
        for dim, value in _word_features(word):
            row[dim] += weight * value
    for pair, count in Counter(pairwise(found)).items():
        dim, sign = _hash("pair:" + " ".join(pair))
        row[dim] += _PAIR_WEIGHT * sign * (1 + math.log(count))
    return row


@lru_cache(maxsize=65536)
def _word_features(word: str) -> tuple[tuple[int, float], ...]:
    """(dim, value) of the word and of its character n-grams."""
    dim, sign = _hash("word:" + word)
    padded = f"<{word}>"
    grams = [
        padded[start : start + size]
        for size in _GRAM_SIZES
        for start in range(len(padded) - size + 1)
    ]
    features = [(dim, sign)]
    for gram in grams:
        dim, sign = _hash("gram:" + gram)
        features.append((dim, _GRAM_WEIGHT * sign / math.sqrt(len(grams))))
    return tuple(features)


def _hash(feature: str) -> tuple[int, float]:
    """(dim, ±1). CRC-32, because Python's own hash differs from process to process."""
    code = zlib.crc32(feature.encode())
    return code % DIMENSIONS, 1.0 if code >> 31 else -1.0
