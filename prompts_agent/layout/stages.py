"""How many layers each chunk of a pipeline gets."""

from __future__ import annotations

__all__ = ["chunk_layers"]


def chunk_layers(layers: int, chunks: int) -> tuple[int, int, int]:
    """Layers of the first chunk, of each between, and of the last: all alike, or fewer in the last,
    or, where that would leave it none, one fewer in the first and in the last.

    >>> chunk_layers(64, 16), chunk_layers(61, 16), chunk_layers(126, 64)
    ((4, 4, 4), (4, 4, 1), (1, 2, 1))
    """
    most = -(-layers // chunks)
    rest = layers - (chunks - 1) * most
    return (most, most, rest) if rest > 0 else (most - 1, most, most - 1)
