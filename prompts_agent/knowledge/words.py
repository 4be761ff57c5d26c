"""Text → words, the same for both rankings, so that spellings of one thing meet."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["words"]

_WORD = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")

_ALIASES: dict[str, tuple[str, ...]] = {
    "allgather": ("all", "gather"),
    "allreduce": ("all", "reduce"),
    "alltoall": ("all", "to", "all"),
    "reducescatter": ("reduce", "scatter"),
    "dp": ("data", "parallel"),
    "tp": ("tensor", "parallel"),
    "cp": ("context", "parallel"),
    "pp": ("pipeline", "parallel"),
    "ep": ("expert", "parallel"),
    "zero-3": ("fsdp",),
    "zero3": ("fsdp",),
    "hsdp": ("fsdp", "data"),
    "rematerialization": ("remat",),
    "checkpointing": ("remat",),
    "parallelism": ("parallel",),
    "parallelised": ("parallel",),
    "parallelized": ("parallel",),
    "tokenization": ("tokenize",),
    "oom": ("out", "of", "memory", "hbm"),
    "multislice": ("multi", "slice", "dcn"),
}
"""What frameworks and people write → the words that recipes use."""

_STOP = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "no",
        "not",
        "of",
        "on",
        "one",
        "or",
        "over",
        "so",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "will",
        "with",
    }
)


def words(text: str) -> tuple[str, ...]:
    """Lower-case words in order; compounds as their parts, plurals as singulars, no stop words.

    >>> words("All-gathers of the KV heads (TP=8)")
    ('all', 'gather', 'kv', 'head', 'tensor', 'parallel', '8')
    """
    found = _WORD.findall(text.lower())
    return tuple(word for compound in found for word in _normal(compound))


@lru_cache(maxsize=65536)
def _normal(compound: str) -> tuple[str, ...]:
    if compound in _ALIASES:
        return _ALIASES[compound]
    result: list[str] = []
    for part in re.split(r"[-_.]", compound):
        singular = _singular(part)
        result.extend(_ALIASES.get(singular, (singular,)))
    return tuple(word for word in result if word not in _STOP)


def _singular(word: str) -> str:
    keeps_s = len(word) < 4 or word.endswith(("ss", "us", "is", "as")) or word[-2].isdigit()
    return word if keeps_s or not word.endswith("s") else word[:-1]
