"""Fit of a whole calibration: every stack's constants, then the preferences of the ranking.

`python -m prompts_agent.estimate.fit_calibration DIRECTORY [FILE]` reads the workload files of a
directory, prints the residuals (plain, and with each model family left out in turn) and writes the
calibration. It takes minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prompts_agent.estimate.calibration import Calibration, Stack, load_calibration
from prompts_agent.estimate.fit import residuals_of
from prompts_agent.estimate.fit_points import points_of, residuals
from prompts_agent.estimate.fit_preference import choice_of, fit_preferences
from prompts_agent.estimate.fit_training import START, Fitted, cross_validated, fit_constants
from prompts_agent.estimate.stack import stack_of
from prompts_agent.workload.workload import Workload
from prompts_agent.workload.yaml import load_workload

__all__ = ["FittedCalibration", "calibration_text", "fit", "fit_plainly"]

_DIGITS = 3


class FittedCalibration(NamedTuple):
    """The calibration, and what each stack's constants miss ("tpu" for TPUs)."""

    calibration: Calibration
    stacks: dict[str, Fitted]


def fit(workloads: Iterable[Workload], *, start: Calibration | None = None) -> FittedCalibration:
    """Fit to measured `workloads` (adopted and alternatives; a sweep is a workload with many), from
    `start`, by default what is shipped.

    Serving's and memory's constants stay; intervals of step times become the cross-validated ones.
    """
    given = list(workloads)
    points = points_of(given)
    known, found = start or load_calibration(), {}
    times = dict(known.step_time)
    for stack in START:
        if not any(point.stack == stack for point in points):
            continue
        fitted = cross_validated(points, known, stack)
        known, name = fitted.calibration, _key(stack)
        found[name] = fitted
        times[name] = fitted.cross_validated
    known = known.model_copy(update={"step_time": times})
    return FittedCalibration(_with_preferences(known, given), found)


def fit_plainly(workloads: Iterable[Workload], *, start: Calibration | None = None) -> Calibration:
    """The calibration that `fit` gives, without leaving families out: intervals are those of the
    fit's own points, too narrow for other jobs.
    """
    given = list(workloads)
    points, known = points_of(given), start or load_calibration()
    times = dict(known.step_time)
    for stack in START:
        own = [point for point in points if point.stack == stack]
        if own:
            known = fit_constants(own, known, stack, passes=1)
            missed = np.concatenate([residuals(point, known) for point in own])
            times[_key(stack)] = residuals_of(missed, "fitted on the same points")
    return _with_preferences(known.model_copy(update={"step_time": times}), given)


def calibration_text(calibration: Calibration) -> str:
    """The YAML of `estimate/data/calibration.yaml`, figures with three digits."""
    import yaml

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.{_DIGITS}g}")
        if isinstance(value, dict):
            return {key: rounded(one) for key, one in value.items()}
        return value

    text: str = yaml.safe_dump(
        rounded(calibration.model_dump(mode="json")), sort_keys=False, width=100
    )
    return "# The constants behind every estimate, and how far the estimates miss.\n" + text


def _with_preferences(calibration: Calibration, workloads: list[Workload]) -> Calibration:
    preferences: dict[Stack | str, dict[str, float]] = {}
    for stack in START:
        own = [w for w in workloads if w.phase.is_training and stack_of(w) == stack]
        choices = [choice for w in own if (choice := choice_of(w, calibration)) is not None]
        # Of eager trainers there are too few cases: what some teach does not help the others.
        if choices and stack != "eager":
            preferences[_key(stack)] = fit_preferences(choices)
    return calibration.model_copy(update={"preferences": preferences})


def _key(stack: Stack | None) -> Any:
    return stack or "tpu"


def main() -> None:
    """Fit to the workload files of a directory; see the module."""
    directory = Path(sys.argv[1])
    found = fit([load_workload(path) for path in sorted(directory.glob("**/*.yaml"))])
    for name, fitted in found.stacks.items():
        for kind, kept in (("plain", fitted.plain), ("left out", fitted.cross_validated)):
            numbers = f"{kept.cases} runs, median {kept.median:.3f}, p90 {kept.p90:.3f}"
            sys.stdout.write(f"{name}, {kind}: {numbers}\n")
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(calibration_text(found.calibration), encoding="utf-8")


if __name__ == "__main__":
    main()
