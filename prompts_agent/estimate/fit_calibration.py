"""Fit of a whole calibration: every stack's constants, then the preferences of the ranking.

`prompts calibrate fit` reads workload files and sweeps, prints the residuals (plain, and with each
model family left out in turn) and writes the calibration. It takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from prompts_agent.estimate.calibration import Calibration, Stack, load_calibration
from prompts_agent.estimate.fit import (
    compiled_residuals,
    peak_residuals,
    ratio_residuals,
    residuals_of,
    step_cases,
)
from prompts_agent.estimate.fit_points import points_of
from prompts_agent.estimate.fit_preference import (
    Agreement,
    Choice,
    agreement,
    agreement_left_out,
    choice_of,
    fit_preferences,
)
from prompts_agent.estimate.fit_serving import fit_serving, served
from prompts_agent.estimate.fit_serving import left_out as serving_left_out
from prompts_agent.estimate.fit_training import START, Fitted, cross_validated, fit_constants
from prompts_agent.estimate.stack import stack_of
from prompts_agent.workload.workload import Measured, Workload

__all__ = ["FittedCalibration", "calibration_text", "fit", "fit_plainly"]

_DIGITS = 3
_PASSES = 2


class FittedCalibration(NamedTuple):
    """The calibration; what each stack's constants miss ("tpu" for TPUs); and how often the ranking
    agrees with adopted layouts, (plainly, each model family left out of the preferences' fit).
    """

    calibration: Calibration
    stacks: dict[str, Fitted]
    agreements: dict[str, tuple[Agreement, Agreement]]

    def lines(self) -> list[str]:
        """The residuals, one line each."""
        found = []
        for name, fitted in self.stacks.items():
            for kind, kept in (("plain", fitted.plain), ("left out", fitted.cross_validated)):
                numbers = f"{kept.cases} runs, median {kept.median:.3f}, p90 {kept.p90:.3f}"
                what = "seconds a token" if name == "serving" else "step time"
                found.append(f"{name}, {what}, {kind}: {numbers}")
        for name, pair in self.agreements.items():
            for kind, one in zip(("plain", "left out"), pair, strict=True):
                numbers = f"{one.cases} cases, first {one.first:.0%}, among three {one.three:.0%}"
                found.append(f"{name}, adopted, {kind}: {numbers}")
        return found


def fit(
    workloads: Iterable[Workload],
    sweeps: Iterable[Workload] = (),
    *,
    start: Calibration | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> FittedCalibration:
    """Fit to measured `workloads` (adopted and alternatives) and `sweeps`, whose rows stand among
    their alternatives, from `start`, by default what is shipped. The same input gives the same
    figures.

    Constants of training, preferences, and the residuals of everything: intervals of step times
    are those of left-out model families. Constants of memory stay. `tell` is given a
    line before each part, which may take a minute.
    """
    given = [*workloads, *sweeps]
    points = points_of([*given, *_shipped(given)])
    known, found = start or load_calibration(), {}
    times = dict(known.step_time)
    for stack in START:
        own = [point for point in points if point.stack == stack]
        if not own:
            continue
        families = {point.group for point in own}
        runs = sum(len(point.measured_s) for point in own)
        tell(f"{_key(stack)}: {runs} runs, {len(families)} families, each left out in turn")
        fitted = cross_validated(points, known, stack, passes=_PASSES)
        known, name = fitted.calibration, _key(stack)
        found[name] = fitted
        # One family, left out, leaves nothing to fit: what is missed then says little of others.
        if len(families) > 1:
            times[name] = fitted.cross_validated
    known = known.model_copy(update={"step_time": times})
    pools = served(given, known)
    if len({pool.group for pool in pools}) > 1:
        tell(f"serving: {len(pools)} pools, each model family left out in turn")
        known, found["serving"] = serving_left_out(pools, known)
    tell("preferences: the legal meshes of every adopted workload")
    choices = _choices(known, given)
    known = _with_preferences(known, choices)
    agreements = {
        name: (agreement(own, known.preferences.get(name, {})), agreement_left_out(own))
        for name, own in choices.items()
        if own
    }
    return FittedCalibration(_with_residuals(known), found, agreements)


def fit_plainly(
    workloads: Iterable[Workload],
    sweeps: Iterable[Workload] = (),
    *,
    start: Calibration | None = None,
) -> Calibration:
    """The constants and preferences that `fit` gives, without leaving families out.

    Intervals stay those of `start`: what shipped constants missed of left-out families is what may
    be expected of these too, and what a fit misses of its own points is less.
    """
    given = [*workloads, *sweeps]
    points, known = points_of([*given, *_shipped(given)]), start or load_calibration()
    for stack in START:
        own = [point for point in points if point.stack == stack]
        if own:
            known = fit_constants(own, known, stack, passes=_PASSES)
    known = fit_serving(served(given, known), known)
    return _with_preferences(known, _choices(known, given))


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


def _shipped(given: list[Workload]) -> list[Workload]:
    """The TPU step times of `estimate/data/measured.yaml`, beside given ones of TPUs: they cover
    chips of which few files name a time.
    """
    if not any(w.phase.is_training and stack_of(w) is None for w in given):
        return []
    return [
        workload.model_copy(
            update={
                "alternatives": (
                    Measured(layout=layout, step_time_s=case.step_time_s, source=case.source),
                )
            }
        )
        for case, layout, workload, _ in step_cases()
        if stack_of(workload) is None
    ]


def _choices(calibration: Calibration, workloads: list[Workload]) -> dict[Any, list[Choice]]:
    """By stack: what adopted workloads had to choose among."""
    found: dict[Any, list[Choice]] = {_key(stack): [] for stack in START}
    for workload in workloads:
        if workload.phase.is_training:
            choice = choice_of(workload, calibration)
            found[_key(stack_of(workload))] += [] if choice is None else [choice]
    return found


def _with_preferences(calibration: Calibration, choices: dict[Any, list[Choice]]) -> Calibration:
    # Of these trainers there are too few cases: what some teach does not help the others.
    few = ("eager", "classic")
    fitted = {
        name: fit_preferences(own) for name, own in choices.items() if own and name not in few
    }
    return calibration.model_copy(update={"preferences": fitted})


def _with_residuals(calibration: Calibration) -> Calibration:
    """The intervals of memory and ratios, from the points that ship with the package."""
    known = calibration
    errors, distances = ratio_residuals(known)
    apart = errors[distances > 0] / distances[distances > 0]
    hbm = dict(known.hbm)
    hbm["tpu"] = residuals_of(compiled_residuals(known), known.hbm["tpu"].source)
    hbm["gpu"] = residuals_of(peak_residuals(known), known.hbm["gpu"].source)
    ratio = residuals_of(apart, known.ratio_per_doubling.source)
    return known.model_copy(update={"hbm": hbm, "ratio_per_doubling": ratio})


def _key(stack: Stack | None) -> Any:
    return stack or "tpu"
