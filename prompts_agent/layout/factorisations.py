"""Ordered factorisations of a number: every way to spread devices over axes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["divisors", "factorisations", "prime_factors"]


def prime_factors(number: int) -> dict[int, int]:
    """Prime → exponent: 12 → {2: 2, 3: 1}."""
    found: dict[int, int] = {}
    prime = 2
    while prime * prime <= number:
        while number % prime == 0:
            found[prime] = found.get(prime, 0) + 1
            number //= prime
        prime += 1
    if number > 1:
        found[number] = found.get(number, 0) + 1
    return found


def divisors(number: int) -> tuple[int, ...]:
    """Every divisor of `number`, ascending: 12 → 1, 2, 3, 4, 6, 12."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    large = [number // d for d in reversed(small) if d * d != number]
    return (*small, *large)


def factorisations(number: int, parts: int) -> NDArray[np.int64]:
    """Every ordered way to write `number` as a product of `parts` factors, int64[m, parts].

    Rows are sorted, the first part slowest. 2ⁿ over k parts has C(n+k−1, k−1) rows, by stars and
    bars over the exponent: 256 over 4 parts has C(11, 3) = 165.

    >>> factorisations(4, 2).tolist()
    [[1, 4], [2, 2], [4, 1]]
    """
    if parts == 0:
        return np.ones((1 if number == 1 else 0, 0), dtype=np.int64)
    rows = np.ones((1, parts), dtype=np.int64)
    for prime, exponent in prime_factors(number).items():
        # Primes are independent: the factorisations of a product are all products of theirs.
        powers = prime ** _compositions(exponent, parts)
        rows = (rows[:, None, :] * powers[None, :, :]).reshape(-1, parts)
    # lexsort takes its last key as the primary one.
    return rows[np.lexsort(rows.T[::-1])]


def _compositions(total: int, parts: int) -> NDArray[np.int64]:
    """Every way to write `total` as an ordered sum of `parts` non-negative integers."""
    rows = np.zeros((1, 0), dtype=np.int64)
    left = np.array([total], dtype=np.int64)
    for _ in range(parts - 1):
        counts = left + 1
        parent = np.repeat(np.arange(len(left)), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        taken = np.arange(len(parent)) - first
        rows = np.concatenate([rows[parent], taken[:, None]], axis=1)
        left = left[parent] - taken
    return np.concatenate([rows, left[:, None]], axis=1)
