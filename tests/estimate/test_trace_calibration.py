from __future__ import annotations

import pytest
from estimate_build import job, layout
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.errors import WorkloadError
from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.ranking import doublings
from prompts_agent.estimate.trace_calibration import calibrate_to
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Measured

WORK = job(batch=32)
BASELINE = layout(WORK, {"fsdp": 4, "tensor": 4}, microbatch=4, gradient_accumulation=2)
NEAR = layout(WORK, {"fsdp": 8, "tensor": 2}, microbatch=4)
FAR = layout(WORK, {"fsdp": 16}, microbatch=2)
TABLE = LayoutTable.of([BASELINE, NEAR, FAR])


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 1e4))
def test_a_prediction_is_the_measurement_times_the_ratio_of_estimates(measured: float) -> None:
    plain = estimate(TABLE, WORK)
    found = estimate(
        TABLE,
        WORK,
        measured_baseline=Measured(layout=BASELINE, step_time_s=measured, source="test"),
    )
    for row in range(3):
        ratio = plain.step_time_s[row] / plain.step_time_s[0]
        assert found.step_time_s[row] == pytest.approx(measured * ratio)
        tokens = WORK.global_batch * WORK.sequence / found.step_time_s[row]
        assert found.tokens_per_s[row] == pytest.approx(tokens)
        time = sum(v[row] for k, v in found.terms.items() if k.startswith("time."))
        assert time == pytest.approx(found.step_time_s[row])
    assert (found.hbm_bytes == plain.hbm_bytes).all()


def test_the_interval_is_a_point_at_the_baseline_and_widens_with_distance() -> None:
    measured = Measured(layout=BASELINE, step_time_s=3.0, source="test")
    found = estimate(TABLE, WORK, measured_baseline=measured)
    width = found.high_s / found.low_s
    assert width[0] == pytest.approx(1.0)
    assert 1.0 < width[1] < width[2]
    plain = estimate(TABLE, WORK)
    assert (width <= plain.high_s / plain.low_s + 1e-9).all()


def test_tokens_per_second_measure_as_well() -> None:
    rate = WORK.global_batch * WORK.sequence / 3.0
    measured = Measured(layout=BASELINE, tokens_per_s=rate, source="test")
    found = estimate(TABLE, WORK, measured_baseline=measured)
    assert found.step_time_s[0] == pytest.approx(3.0)


def test_a_baseline_that_ran_out_of_memory_calibrates_nothing() -> None:
    measured = Measured(layout=BASELINE, out_of_memory=True, source="test")
    found = estimate(TABLE, WORK, measured_baseline=measured)
    assert (found.step_time_s == estimate(TABLE, WORK).step_time_s).all()


def test_a_measurement_of_no_time_is_refused() -> None:
    plain = estimate(TABLE, WORK)
    with pytest.raises(WorkloadError, match="a step takes time"):
        calibrate_to(
            plain,
            measured_step_s=0.0,
            baseline=plain,
            doublings=doublings(TABLE, BASELINE),
            residuals=load_calibration().ratio_per_doubling,
        )
