"""The arithmetic of scores: regret, rank correlation, agreement, coverage, fit. Numbers in, numbers
out; nothing here knows what a layout is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "TIE",
    "best_of_random",
    "kendall_tau",
    "regret",
    "tied_best",
]

FloatColumn = NDArray[np.float64]

TIE = 0.03
"""Runs whose times differ by less are tied: repeats of one layout differ as much."""


def regret(times_s: FloatColumn, chosen: Sequence[int] | NDArray[np.int64]) -> float:
    """What the best of `chosen` loses against the best there is: its time ÷ the least time - 1.

    >>> regret(np.array([10.0, 12.0, 11.0]), [1, 2])
    0.10000000000000009
    """
    return float(times_s[np.asarray(chosen)].min() / times_s.min() - 1.0)


def tied_best(times_s: FloatColumn) -> NDArray[np.bool_]:
    """Which rows are within a tie of the least time."""
    return np.asarray(times_s <= times_s.min() * (1.0 + TIE))


def best_of_random(values: FloatColumn, draws: int) -> float:
    """The expected smallest of `draws` values drawn without replacement, exactly.

    Of n sorted values, the k-th (from 0) is the smallest of d draws in C(n-k-1, d-1) of C(n, d)
    ways. Values 1, 2, 3 and two draws: 1 in two ways of three, 2 in one, so 4/3.
    """
    ordered = np.sort(values)
    n = len(ordered)
    draws = min(draws, n)
    # P(k) = d/(n-k) · Π_{j<k} (1 - d/(n-j)): no factorials, so no overflow.
    left, expected = 1.0, 0.0
    for k in range(n - draws + 1):
        share = draws / (n - k)
        expected += left * share * float(ordered[k])
        left *= 1.0 - share
    return expected


def kendall_tau(estimated: FloatColumn, measured: FloatColumn) -> float | None:
    """Kendall's tau between two rankings of the same rows, over the pairs that measurement tells
    apart (more than a tie): (right pairs - wrong pairs) ÷ pairs; equal estimates count for neither.

    None where no two measurements differ.
    """
    low, high = np.triu_indices(len(measured), k=1)
    a, b = measured[low], measured[high]
    apart = np.maximum(a, b) > np.minimum(a, b) * (1.0 + TIE)
    if not apart.any():
        return None
    truth = np.sign(a[apart] - b[apart])
    guess = np.sign(estimated[low][apart] - estimated[high][apart])
    return float(np.mean(truth * guess))
