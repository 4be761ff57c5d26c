"""Intervals, self time, steps, activities: pure functions against hand-worked answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.trace.capture import DeviceEvents, Events, ModuleRun, Op
from prompts_agent.trace.measure.classify import Activity, activity
from prompts_agent.trace.measure.intervals import Intervals, joint, union
from prompts_agent.trace.measure.selftime import self_times
from prompts_agent.trace.measure.steps import find_steps

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=15)


def of(pairs: list[tuple[int, int]]) -> Intervals:
    start = np.array([a for a, _ in pairs], np.int64)
    return union(start, start + np.array([d for _, d in pairs], np.int64))


def points(pairs: list[tuple[int, int]]) -> set[int]:
    return {k for a, d in pairs for k in range(a, a + d)}


@given(spans)
def test_union_is_the_set_of_moments(pairs: list[tuple[int, int]]) -> None:
    found = of(pairs)
    assert found.length == len(points(pairs))
    assert (found.end > found.start).all()
    assert (found.start[1:] > found.end[:-1]).all()


@given(spans, spans)
def test_overlap_and_joint(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    a, b = of(one), of(other)
    assert a.overlap(b) == len(points(one) & points(other))
    assert joint(a, b).length == len(points(one) | points(other))


def test_covered() -> None:
    found = of([(0, 4), (6, 2)])
    assert found.covered(np.array([0, 3, 5, 7, 9])).tolist() == [0, 3, 4, 5, 6]


def events(rows: list[tuple[int, int, int]]) -> Events:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Events(table[:, 0].astype(np.int32), table[:, 1].copy(), table[:, 2].copy())


def test_self_time_of_nested_loops() -> None:
    # while [0,20) holds a [1,4), while [5,15) (which holds b [6,8), c [8,13)), and d [16,20).
    line = events([(0, 0, 20), (1, 1, 3), (0, 5, 10), (2, 6, 2), (3, 8, 5), (4, 16, 4), (5, 20, 7)])
    assert self_times(line).tolist() == [20 - 3 - 10 - 4, 3, 10 - 7, 2, 5, 4, 7]


def test_self_time_with_equal_starts_and_empty_events() -> None:
    line = events([(0, 0, 10), (1, 0, 4), (2, 4, 0), (3, 4, 6), (4, 10, 1)])
    assert self_times(line).tolist() == [0, 4, 0, 6, 1]


def test_self_time_of_a_flat_line() -> None:
    assert self_times(events([(0, 0, 5), (1, 5, 3)])).tolist() == [5, 3]
    assert self_times(events([])).tolist() == []


def device(
    *runs: tuple[str, int, int], markers: list[tuple[int, int]] | None = None
) -> DeviceEvents:
    return DeviceEvents(
        table=[],
        ops=events([]),
        modules=[ModuleRun(name, 1, start, duration) for name, start, duration in runs],
        step_markers=markers or [],
    )


def test_first_and_last_runs_are_dropped() -> None:
    # Four of 120 and a cut-off fifth of 3: the mean would be 96.6, the step is 120.
    found = find_steps(device(*[("f", 130 * k, 120) for k in range(4)], ("f", 520, 3)))
    assert found is not None
    assert (len(found), found.median_ps, found.period_ps, found.runs) == (3, 120, 130, 5)
    assert found.until.tolist() == [260, 390, 520]
    assert (
        found.derived_from("TPU:0") == "median of 3 runs of f on TPU:0, 2 of 5 at the ends dropped"
    )


def test_few_runs_lose_only_those_that_were_cut() -> None:
    found = find_steps(device(("f", 0, 100), ("f", 110, 104), ("f", 220, 30)))
    assert found is not None
    # The third tells where the second ended.
    assert (len(found), found.median_ps, found.period_ps) == (2, 102, 110)
    both = find_steps(device(("f", 0, 100), ("f", 110, 104)))
    assert both is not None
    assert (len(both), both.period_ps, both.until.tolist()) == (2, 110, [110, 220])


def test_one_run_has_no_period() -> None:
    found = find_steps(device(("f", 5, 100)))
    assert found is not None
    assert (found.period_ps, found.step_ps, found.until.tolist()) == (None, 100, [105])


def test_the_program_of_most_time_makes_the_step() -> None:
    runs = [("small", 100 * k, 1) for k in range(9)] + [("big", 100 * k + 2, 50) for k in range(9)]
    found = find_steps(device(*runs))
    assert found is not None
    assert (found.program, found.period_ps) == ("big", 100)


def test_marked_steps_only_without_runs() -> None:
    found = find_steps(device(markers=[(0, 90), (100, 90), (200, 90)]))
    assert found is not None
    assert (found.from_markers, found.period_ps) == (True, 100)
    assert find_steps(device()) is None


def test_a_pause_is_not_typical() -> None:
    starts = [0, 100, 200, 300, 1300, 1400, 1500]
    found = find_steps(device(*[("f", start, 90) for start in starts]))
    assert found is not None
    assert found.typical().tolist() == [True, True, False, True, True]


@pytest.mark.parametrize(
    ("opcode", "host", "platform", "expected"),
    [
        ("fusion", False, "tpu", Activity.COMPUTE),
        ("while", False, "tpu", Activity.CONTAINER),
        ("while", True, "tpu", Activity.CONTAINER),
        ("all-reduce", False, "tpu", Activity.COLLECTIVE),
        ("all-gather-start", False, "tpu", Activity.ISSUE),
        ("all-gather-start", False, "gpu", Activity.COLLECTIVE),
        ("all-gather-done", False, "tpu", Activity.COLLECTIVE),
        ("copy-done", True, "tpu", Activity.HOST_TRANSFER),
        ("copy-start", True, "tpu", Activity.ISSUE),
        ("copy-done", False, "tpu", Activity.COMPUTE),  # HBM to VMEM
        ("recv-done", True, "tpu", Activity.HOST_TRANSFER),
        ("recv-done", False, "tpu", Activity.COLLECTIVE),
        ("infeed", True, "tpu", Activity.INPUT),
        ("outfeed", True, "tpu", Activity.HOST_TRANSFER),
        ("memcpy-h2d", True, "gpu", Activity.HOST_TRANSFER),
        ("memcpy-d2d", False, "gpu", Activity.COMPUTE),
        ("unknown", False, "gpu", Activity.COLLECTIVE),
        ("send-recv", False, "gpu", Activity.COLLECTIVE),
    ],
)
def test_activities(opcode: str, host: bool, platform: str, expected: Activity) -> None:
    assert activity(Op(name="x", opcode=opcode, is_host_transfer=host), platform) is expected
