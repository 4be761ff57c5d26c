from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.layout.factorisations import divisors, factorisations, prime_factors


@pytest.mark.parametrize(
    ("chips", "axes", "expected"),
    [
        # The PROMPTS paper counts 165 configurations of 256 chips over replica, data, seq, model.
        (256, 4, 165),
        # C(n + k − 1, k − 1) for 2ⁿ chips and k axes.
        (512, 3, math.comb(11, 2)),
        (16, 4, math.comb(7, 3)),
        (128, 3, math.comb(9, 2)),
        (1024, 6, math.comb(15, 5)),
    ],
)
def test_powers_of_two_follow_stars_and_bars(chips: int, axes: int, expected: int) -> None:
    assert len(factorisations(chips, axes)) == expected


@given(st.integers(1, 72), st.integers(1, 4))
def test_rows_are_all_ordered_factorisations_in_order(number: int, parts: int) -> None:
    divs = [d for d in range(1, number + 1) if number % d == 0]
    expected = [c for c in itertools.product(divs, repeat=parts) if math.prod(c) == number]
    assert [tuple(row) for row in factorisations(number, parts).tolist()] == expected


def test_no_axes_hold_one_device_only() -> None:
    assert len(factorisations(1, 0)) == 1
    assert len(factorisations(2, 0)) == 0


@given(st.integers(1, 10_000))
def test_prime_factors_multiply_back(number: int) -> None:
    found = prime_factors(number)
    assert math.prod(p**e for p, e in found.items()) == number
    assert all(all(p % d for d in range(2, math.isqrt(p) + 1)) for p in found)


@given(st.integers(1, 5000))
def test_divisors_are_all_of_them_ascending(number: int) -> None:
    assert list(divisors(number)) == [d for d in range(1, number + 1) if number % d == 0]
