"""The arithmetic of scores, worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.evaluate.bootstrap import mean_figure, quantile_figure, ratio_figure
from prompts_agent.evaluate.scores import best_of_random, kendall_tau, regret, tied_best


def test_regret_is_the_best_of_the_chosen_against_the_best_of_all() -> None:
    times_s = np.array([10.0, 12.0, 11.0, 30.0])
    assert regret(times_s, [0]) == 0.0
    assert regret(times_s, [1]) == pytest.approx(0.2)
    assert regret(times_s, [3, 1, 2]) == pytest.approx(0.1)


def test_ties_are_within_three_per_cent() -> None:
    assert tied_best(np.array([100.0, 102.9, 103.1])).tolist() == [True, True, False]


def test_tau_counts_only_pairs_that_differ() -> None:
    # 100 and 101 are tied; of the five other pairs the estimate has one wrong (200 before 100):
    # 1-2 tie, 1-3 wrong, 2-3 right, 1-4, 2-4, 3-4 right: (4 - 1) / 5.
    measured = np.array([100.0, 101.0, 200.0, 400.0])
    estimated = np.array([3.0, 1.0, 2.0, 9.0])
    assert kendall_tau(estimated, measured) == pytest.approx(3 / 5)
    assert kendall_tau(measured, measured) == 1.0
    assert kendall_tau(-measured, measured) == -1.0


def test_equal_estimates_are_neither_right_nor_wrong() -> None:
    # Pairs: 1-2 equal estimates, 1-3 and 2-3 right: 2 of 3.
    found = kendall_tau(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 4.0]))
    assert found == pytest.approx(2 / 3)


def test_without_a_difference_there_is_no_tau() -> None:
    assert kendall_tau(np.array([1.0, 2.0]), np.array([100.0, 101.0])) is None


def test_expected_best_of_random_draws() -> None:
    # Values 1, 2, 3; of the three pairs two hold the 1: (1 + 1 + 2) / 3.
    assert best_of_random(np.array([3.0, 1.0, 2.0]), 2) == pytest.approx(4 / 3)
    assert best_of_random(np.array([3.0, 1.0]), 5) == 1.0


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=7), st.integers(1, 4))
def test_expected_best_is_that_of_all_draws(values: list[float], draws: int) -> None:
    found = best_of_random(np.array(values), draws)
    draws = min(draws, len(values))
    every = [min(drawn) for drawn in itertools.combinations(values, draws)]
    assert found == pytest.approx(float(np.mean(every)), abs=1e-9)


def test_a_mean_weighs_clusters_not_rows() -> None:
    found = mean_figure({"many": [0.0] * 9, "one": [1.0], "none": []})
    assert found is not None
    assert (found.value, found.workloads) == (0.5, 2)
    # Both clusters drawn twice: the interval reaches from one to the other.
    assert (found.low, found.high) == (0.0, 1.0)
    assert mean_figure({"none": []}) is None


def test_a_quantile_weighs_clusters_not_rows() -> None:
    # Half of the weight lies on the one row of "one", the largest; nine share the other half.
    rows = {"many": [0.1 * k for k in range(1, 10)], "one": [5.0]}
    middle = quantile_figure(rows, 0.5)
    high = quantile_figure(rows, 0.6)
    assert middle is not None
    assert high is not None
    assert middle.value == pytest.approx(0.9)
    assert high.value == 5.0


def test_a_ratio_sums_rows() -> None:
    # 1 of 2 and 8 of 8: 9 of 10.
    found = ratio_figure({"a": (1.0, 2.0), "b": (8.0, 8.0), "c": (0.0, 0.0)})
    assert found is not None
    assert (found.value, found.workloads) == (0.9, 2)


def test_intervals_are_the_same_every_time() -> None:
    clusters = {str(k): [float(k % 7)] for k in range(40)}
    assert mean_figure(clusters) == mean_figure(clusters)
