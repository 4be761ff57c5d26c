from __future__ import annotations

import itertools

import numpy as np
import pytest
from estimate_build import job, layout
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.estimate.estimate import Estimates
from prompts_agent.estimate.ranking import (
    FITS,
    MAY_FIT,
    TOO_LARGE,
    diverse_top,
    doublings,
    fit_class,
    fit_probability,
    order,
    tie_reason,
)
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Objective

WORK = job()
LAYOUTS = [
    layout(WORK, {"fsdp": 16}),
    layout(WORK, {"fsdp": 8, "tensor": 2}, microbatch=2),
    layout(WORK, {"fsdp": 4, "tensor": 4}, microbatch=4),
    layout(WORK, {"fsdp": 4, "tensor": 4}, microbatch=2, gradient_accumulation=2),
]
TABLE = LayoutTable.of(LAYOUTS)


def estimates(times: list[float], needs: list[float]) -> Estimates:
    step, hbm = np.array(times), np.array(needs)
    return Estimates(
        step_time_s=step,
        low_s=step * 0.8,
        high_s=step * 1.2,
        hbm_bytes=hbm,
        hbm_low_bytes=hbm * 0.9,
        hbm_high_bytes=hbm * 1.1,
        tokens_per_s=1e6 / step,
        terms={},
    )


def ranked(
    found: Estimates, objective: Objective = Objective.THROUGHPUT, **keys: object
) -> list[int]:
    return list(order(found, TABLE, hbm_bytes=100.0, objective=objective, **keys))


def test_fit_has_three_classes() -> None:
    found = estimates([1.0] * 4, [90.0, 95.0, 101.0, 200.0])
    assert list(fit_class(found, 100.0)) == [FITS, MAY_FIT, TOO_LARGE, TOO_LARGE]


def test_time_is_weighed_by_the_chance_to_fit_and_what_is_too_large_comes_last() -> None:
    # 95 of 100 with an interval of ±10%: z = ln(1/0.95) ÷ (ln 1.1 ÷ 1.645) = 0.885, 82% by the
    # logistic; 1 s ÷ 0.82 = 1.22 s stands before 1.25 s and behind 1.2 s.
    assert ranked(estimates([1.2, 1.0, 1.25, 0.1], [50.0, 95.0, 50.0, 150.0])) == [0, 1, 2, 3]


def test_an_estimate_at_the_limit_fits_in_half_of_the_cases() -> None:
    found = fit_probability(estimates([1.0] * 4, [100.0, 50.0, 200.0, 100 / 1.1]), 100.0)
    assert found == pytest.approx([0.5, 1.0, 0.0, 0.943], abs=0.001)


def test_a_preference_shifts_the_order_and_not_the_times() -> None:
    found = estimates([1.0, 1.05, 1.2, 1.3], [1.0] * 4)
    assert ranked(found, preference=np.array([0.1, 0.0, 0.0, 0.0]))[:2] == [1, 0]


def test_a_tie_under_one_percent_prefers_fewer_axes_then_smaller_tensor() -> None:
    assert ranked(estimates([1.009, 1.004, 1.0, 1.0], [1.0] * 4))[:2] == [0, 1]
    assert ranked(estimates([1.02, 1.004, 1.0, 1.0], [1.0] * 4))[0] == 1


def test_a_tie_prefers_less_change_from_the_baseline() -> None:
    found = estimates([2.0, 2.0, 1.0, 1.0], [1.0] * 4)
    assert ranked(found, baseline=LAYOUTS[3])[:2] == [3, 2]
    assert ranked(found, baseline=LAYOUTS[2])[:2] == [2, 3]


def test_objectives_ask_for_different_things() -> None:
    found = estimates([3.0, 2.0, 1.0, 4.0], [10.0, 40.0, 80.0, 20.0])
    assert ranked(found, Objective.THROUGHPUT)[0] == 2
    assert ranked(found, Objective.LATENCY)[0] == 2
    assert ranked(found, Objective.COST)[0] == 2
    assert ranked(found, Objective.FIT)[0] == 0


def test_proposals_have_different_meshes_and_may_fit() -> None:
    found = estimates([4.0, 3.0, 1.0, 1.5], [50.0, 150.0, 50.0, 50.0])
    rows = np.array(ranked(found))
    assert list(diverse_top(rows, TABLE, found, hbm_bytes=100.0)) == [2, 0]


def test_what_runs_already_is_no_proposal_but_better_knobs_on_its_mesh_are() -> None:
    found = estimates([4.0, 3.0, 1.0, 1.5], [50.0] * 4)
    rows = np.array(ranked(found))
    top = {
        name: list(diverse_top(rows, TABLE, found, hbm_bytes=100.0, without=without))
        for name, without in (("best", LAYOUTS[2]), ("second", LAYOUTS[3]))
    }
    assert top == {"best": [1, 0], "second": [2, 1, 0]}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.1, 100.0), min_size=4, max_size=4))
def test_the_order_is_a_permutation_and_respects_one_percent(times: list[float]) -> None:
    rows = ranked(estimates(times, [1.0] * 4))
    assert sorted(rows) == [0, 1, 2, 3]
    for first, second in itertools.pairwise(rows):
        assert times[first] <= times[second] * 1.011


def test_moving_a_factor_of_two_is_one_doubling() -> None:
    assert list(doublings(TABLE, layout(WORK, {"fsdp": 16}))) == pytest.approx([0.0, 2.0, 3.0, 3.0])
    assert list(doublings(TABLE, None)) == [0.0] * 4


def test_a_tie_is_explained() -> None:
    assert tie_reason(LAYOUTS[0], LAYOUTS[1]) == "fewer axes"
    assert tie_reason(LAYOUTS[1], LAYOUTS[2]) == "smaller tensor degree"
    assert tie_reason(LAYOUTS[2], LAYOUTS[3], LAYOUTS[2]) == "less change from the baseline"
    assert tie_reason(LAYOUTS[2], LAYOUTS[3]) == "order of degrees"
