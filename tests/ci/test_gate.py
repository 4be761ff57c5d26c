"""Gates: 3% is a tie, another job cannot be compared, what cannot be told does not pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prompts_agent.agents.report import Report
from prompts_agent.ci.gate import Gate, gates, judge
from prompts_agent.errors import InputError

STORED = Path(__file__).resolve().parents[1] / "report" / "golden" / "training.json"


@pytest.fixture
def report() -> Report:
    """2.20 s a step measured; 13.1 of 16.0 GB; the first proposal compiled."""
    return Report.model_validate_json(STORED.read_bytes())


def with_baseline(report: Report, **changed: Any) -> Report:
    assert report.baseline is not None
    return report.model_copy(update={"baseline": report.baseline.model_copy(update=changed)})


def result(gate: Gate, report: Report, against: Report | None = None) -> str:
    return judge(report, [gate], against)[0].result


@pytest.mark.parametrize(
    ("seconds", "expected"), [(2.20, "passed"), (2.26, "passed"), (2.27, "failed"), (1.0, "passed")]
)
def test_slower_by_more_than_three_percent_is_a_regression(
    report: Report, seconds: float, expected: str
) -> None:
    before = with_baseline(report, measured_step_time_s=2.20)
    now = with_baseline(report, measured_step_time_s=seconds)
    assert result(Gate.REGRESSION, now, before) == expected


def test_a_measurement_is_not_held_against_an_estimate(report: Report) -> None:
    planned = with_baseline(report, measured_step_time_s=None, predicted_step_time_s=9.0)
    answer = judge(
        with_baseline(report, measured_step_time_s=2.2, predicted_step_time_s=9.1),
        [Gate.REGRESSION],
        planned,
    )[0]
    assert answer.result == "passed"
    assert answer.why == "predicted 9.10 s a step, before 9.00 s (1.01×)"


def test_another_job_cannot_be_compared(report: Report) -> None:
    assert report.workload is not None
    other = report.model_copy(
        update={"workload": report.workload.model_copy(update={"global_batch": 128})}
    )
    answer = judge(report, [Gate.REGRESSION], other)[0]
    assert answer.result == "inconclusive"
    assert answer.holds_up
    assert "global batch 128 → 64" in answer.why


def test_nothing_to_compare_with_is_inconclusive(report: Report) -> None:
    assert result(Gate.REGRESSION, report) == "inconclusive"
    assert result(Gate.REGRESSION, report, report.model_copy(update={"baseline": None})) == (
        "inconclusive"
    )


def test_memory(report: Report) -> None:
    assert result(Gate.OOM, report) == "passed"
    assert result(Gate.OOM, with_baseline(report, hbm_bytes=16_100_000_000)) == "failed"
    assert result(Gate.OOM, with_baseline(report, hbm_bytes=None)) == "inconclusive"
    assert result(Gate.OOM, report.model_copy(update={"baseline": None})) == "passed"
    silent = report.model_copy(update={"baseline": None, "proposals": ()})
    assert result(Gate.OOM, silent) == "inconclusive"


def test_rung(report: Report) -> None:
    assert result(Gate.UNVERIFIED, report) == "passed"
    second = report.model_copy(update={"proposals": report.proposals[1:]})
    assert result(Gate.UNVERIFIED, second) == "failed"
    assert result(Gate.UNVERIFIED, report.model_copy(update={"proposals": ()})) == "inconclusive"


def test_gates_are_named() -> None:
    assert gates("oom, regression") == (Gate.OOM, Gate.REGRESSION)
    with pytest.raises(InputError, match="'ooom' is no gate"):
        gates("oom,ooom")
    with pytest.raises(InputError, match="no gate is named"):
        gates(" ")
