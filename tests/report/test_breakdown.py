"""Cells of bars, and the parts of a step."""

from __future__ import annotations

import pytest
import report_build
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.report.breakdown import UNATTRIBUTED, cells, step_parts
from prompts_agent.trace.profile import Breakdown


def test_cells_by_hand() -> None:
    # 10 cells: 5, 2.5, 2.5; the earlier of two equal remainders gets the last cell.
    assert cells([2, 1, 1], 10) == [5, 3, 2]
    # 0.1 % of 20 cells is none, and is shown all the same.
    assert cells([999, 1], 20) == [19, 1]
    assert cells([1, 0], 8) == [8, 0]
    assert cells([0, 0], 8) == [0, 0]


@given(
    st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=6),
    st.integers(min_value=10, max_value=200),
)
def test_cells_fill_the_bar(seconds: list[float], width: int) -> None:
    found = cells(seconds, width)
    positive = [s > 0 for s in seconds]
    assert [size > 0 for size in found] == positive
    assert sum(found) == (width if any(positive) else 0)


def test_parts_of_the_training_step_add_up() -> None:
    # 1.430 + 0.530 + 0 + 0.176 + 0.064 = 2.200, the period.
    parts = step_parts(report_build.training_profile())
    assert parts.total_s == 2.2
    assert UNATTRIBUTED not in [part.label for part in parts.parts]


def test_what_the_known_parts_leave_is_not_attributed() -> None:
    profile = report_build.training_profile().model_copy(
        update={"breakdown": Breakdown(compute_s=1.2)}
    )
    parts = step_parts(profile)
    assert parts.parts[-1].label == UNATTRIBUTED
    assert parts.parts[-1].seconds == pytest.approx(1.0)  # 2.2 - 1.2
    assert parts.parts[1] == ("exposed collective", None)


def test_nothing_known_is_no_total() -> None:
    profile = report_build.training_profile().model_copy(update={"breakdown": Breakdown()})
    assert step_parts(profile).total_s is None
