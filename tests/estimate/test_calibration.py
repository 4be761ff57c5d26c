from __future__ import annotations

import numpy as np
import pytest

from prompts_agent.errors import InternalError
from prompts_agent.estimate.calibration import Constants, load_calibration
from prompts_agent.estimate.fit import (
    compiled_residuals,
    load_measured,
    peak_residuals,
    ratio_residuals,
    residuals_of,
    step_residuals,
)
from prompts_agent.estimate.pools import score_pools


def test_both_platforms_have_every_constant_and_a_source_for_it() -> None:
    calibration = load_calibration()
    for platform, entries in calibration.platforms.items():
        assert set(entries) == set(Constants.model_fields)
        assert all(len(entry.source) > 10 for entry in entries.values()), platform
        assert calibration.constants(platform).matmul_efficiency > 0


def test_a_platform_without_constants_is_named() -> None:
    calibration = load_calibration()
    without = calibration.model_copy(update={"platforms": {"tpu": calibration.platforms["tpu"]}})
    with pytest.raises(InternalError, match="gpu"):
        without.constants("gpu")


def test_stored_residuals_are_those_of_the_measured_points() -> None:
    calibration = load_calibration()
    errors, distances = ratio_residuals()
    found = {
        "gpu": step_residuals("gpu"),
        "tpu needs": compiled_residuals(),
        "gpu needs": peak_residuals(),
        "ratio": errors[distances > 0] / distances[distances > 0],
    }
    stored = {
        "gpu": calibration.step_time["gpu"],
        "tpu needs": calibration.hbm["tpu"],
        "gpu needs": calibration.hbm["gpu"],
        "ratio": calibration.ratio_per_doubling,
    }
    for name, values in found.items():
        fitted = residuals_of(values, "")
        for field in ("median", "p90", "low", "high"):
            kept = getattr(stored[name], field)
            near = pytest.approx(kept, abs=0.0015, rel=0.005)
            assert getattr(fitted, field) == near, (name, field)
        assert fitted.cases == stored[name].cases, name


def test_the_interval_of_tpu_step_times_covers_the_measured_points() -> None:
    # Residuals are those of other points, cross-validated: 90% is asked of new jobs, 80% here.
    kept = load_calibration().step_time["tpu"]
    errors = -step_residuals("tpu")
    assert np.mean((errors >= kept.low) & (errors <= kept.high)) > 0.8


def test_tpu_step_times_are_within_8_percent_at_the_median() -> None:
    assert np.median(np.abs(step_residuals("tpu"))) < 0.08


def test_every_measured_point_names_its_source() -> None:
    models, steps, needs = load_measured()
    assert all(step.source and step.model in models for step in steps)
    assert all(need.need_gib > 0 for need in needs)


def test_the_first_choice_on_dense_pools_loses_little_beside_a_random_one() -> None:
    # Constants were fitted on these pools among others: a guard against regressions, not a result.
    score = score_pools()
    assert score.pools == 31
    assert score.mean_regret < 0.03 < score.random_regret
    assert score.first_right > 0.7
