"""Predictions from a measured baseline: the measurement carries what the formulas do not know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from prompts_agent.errors import WorkloadError
from prompts_agent.estimate.calibration import Residuals
from prompts_agent.estimate.estimate import Estimates

__all__ = ["calibrate_to"]

FloatColumn = NDArray[np.float64]


def calibrate_to(
    estimates: Estimates,
    *,
    measured_step_s: float,
    baseline: Estimates,
    doublings: FloatColumn,
    residuals: Residuals,
) -> Estimates:
    """`measured × estimate ÷ estimate of the baseline`, with the interval of such ratios.

    `baseline` has one row, the estimate of the layout that was measured; `doublings` is each
    candidate's distance from it (0 for the baseline itself, whose interval is then a point), and
    `residuals` are those of ratios per doubling. Of the interval that they give and the estimate's
    own, moved along, the narrower bound counts on each side. Raises `WorkloadError` for a
    measurement that is not positive.
    """
    if not measured_step_s > 0.0:
        raise WorkloadError(
            f"measured step time {measured_step_s} s",
            rule="a step takes time",
            cure="Give the measured seconds of one step, or leave the measurement out.",
        )
    factor = measured_step_s / float(baseline.step_time_s[0])
    step = estimates.step_time_s * factor
    ratio = np.exp(residuals.p90 * doublings)
    terms = {
        name: value * factor if name.startswith("time.") else value
        for name, value in estimates.terms.items()
    }
    return replace(
        estimates,
        step_time_s=step,
        low_s=np.maximum(step / ratio, estimates.low_s * factor),
        high_s=np.minimum(step * ratio, estimates.high_s * factor),
        tokens_per_s=estimates.tokens_per_s / factor,
        terms=terms,
    )
