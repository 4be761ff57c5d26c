"""The words and figures of a comparison that every renderer prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prompts_agent.agents.comparison.comparison import (
    Comparison,
    FindingShift,
    Likeness,
    Outcome,
    Run,
    Shift,
)
from prompts_agent.report.figures import short_sha, title
from prompts_agent.units import format_seconds

__all__ = [
    "cells",
    "change_text",
    "differences",
    "headline",
    "layout_line",
    "likeness_title",
    "noise_line",
    "note",
    "outcome_lines",
    "run_line",
    "same_line",
    "seconds",
]

_UNKNOWN = "unknown"


def cells(shift: Shift) -> tuple[str, str, str]:
    """Before, after and change. A finding that costs no seconds was found, or it was not."""
    if (
        not isinstance(shift, FindingShift)
        or shift.before_s is not None
        or shift.after_s is not None
    ):
        return seconds(shift.before_s), seconds(shift.after_s), change_text(shift)
    return (
        "found" if shift.found != "after" else "no",
        "found" if shift.found != "before" else "no",
        {"both": "stays", "before": "gone", "after": "new"}[shift.found],
    )


def seconds(value: float | None) -> str:
    """`784 ms`, or `unknown`."""
    return _UNKNOWN if value is None else format_seconds(value)


def change_text(shift: Shift) -> str:
    """`−200 ms`, `+3.10 ms`, `0 s`; `unknown` where one side is."""
    if shift.change_s is None:
        return _UNKNOWN
    sign = "" if shift.change_s == 0 else "−" if shift.change_s < 0 else "+"
    return f"{sign}{format_seconds(abs(shift.change_s))}"


def note(shift: Shift) -> str:
    """What a reader must know of that row: noise, and findings that came or went."""
    notes = []
    timed = shift.before_s is not None or shift.after_s is not None
    if isinstance(shift, FindingShift) and shift.found != "both" and timed:
        notes.append("no finding after" if shift.found == "before" else "no finding before")
    if shift.within_noise:
        notes.append("within the noise")
    elif shift.within_noise is None and shift.change_s is not None:
        notes.append("noise unknown")
    return ", ".join(notes)


def headline(found: Comparison) -> str:
    """The answer in one sentence."""
    times = f"{seconds(found.step.before_s)} → {seconds(found.step.after_s)} a step"
    if not found.alike:
        return f"Not the same job: {times}"
    match found.direction:
        case "within_noise":
            return f"No change beyond the noise: {times}"
        case "unknown":
            return f"{times}; too few steps to say whether that is more than noise"
    ratio = f"{found.gain:.2f}× the throughput" if found.gain is not None else found.direction
    return f"{found.direction.capitalize()}: {times}, {ratio}"


def layout_line(found: Comparison) -> str:
    """Which mesh became which."""
    one, two = found.before.mesh or _UNKNOWN, found.after.mesh or _UNKNOWN
    if one == two:
        return f"The mesh is the same: {one}" if one != _UNKNOWN else "The mesh is unknown"
    return f"{one} → {two}"


def run_line(run: Run) -> str:
    """`sha256 29399e668068 · data 2 × tensor 4 · 6 steps, each ± 1.20 ms`."""
    read = f"sha256 {short_sha(run.trace.sha256)} · " if run.trace is not None else ""
    spread = f", each ± {format_seconds(run.spread_s)}" if run.spread_s is not None else ""
    steps = f"{run.steps} step{'' if run.steps == 1 else 's'}{spread}"
    return f"{read}{run.mesh or 'mesh unknown'} · {steps}"


def noise_line(found: Comparison) -> str:
    """The noise floor and where it comes from."""
    floor = found.noise.floor_s
    return (
        f"noise {found.noise.source}"
        if floor is None
        else f"noise floor {seconds(floor)} " + (f"({found.noise.source})")
    )


def likeness_title(found: Comparison) -> str:
    """Whether the two runs are of one job, and how much of that the traces tell."""
    if not found.alike:
        return "Not the same job"
    told = all(item.same is not None for item in found.likeness)
    return "The same job" if told else "The same job, as far as the traces tell"


def same_line(items: Sequence[Likeness]) -> str:
    """What is the same in both, in one line; empty where nothing is."""
    same = [item.what for item in items if item.same]
    return f"the same in both: {', '.join(same)}" if same else ""


def differences(items: Sequence[Likeness]) -> list[str]:
    """What differs, and what a trace does not tell, a line each."""
    lines = [f"{i.what} differs: {i.before} → {i.after}" for i in items if i.same is False]
    untold = [i.what for i in items if i.same is None]
    if untold:
        lines.append(f"not told by both traces: {', '.join(untold)}")
    return lines


def outcome_lines(outcome: Outcome) -> list[str]:
    """Predicted and measured, and how far off; or why they are not held against each other."""
    lines = [f"proposal {outcome.rank}: {title(outcome.layout)}"]
    if outcome.not_scored is not None:
        return [*lines, f"not scored: {outcome.not_scored}"]
    if outcome.predicted_gain is not None and outcome.measured_gain is not None:
        bounds = _range(outcome.gain_low, outcome.gain_high, lambda value: f"{value:.2f}×")
        lines.append(
            f"gain predicted {outcome.predicted_gain:.2f}×{bounds}, measured "
            f"{outcome.measured_gain:.2f}×{_off(outcome.gain_error)}"
        )
    if outcome.predicted_step_time_s is not None:
        bounds = _range(outcome.step_low_s, outcome.step_high_s, format_seconds)
        lines.append(
            f"step predicted {seconds(outcome.predicted_step_time_s)}{bounds}, measured "
            f"{seconds(outcome.measured_step_time_s)}{_off(outcome.step_error)}"
        )
    if outcome.inside is not None:
        lines.append(
            "inside the predicted 90% interval"
            if outcome.inside
            else "outside the predicted 90% interval"
        )
    return lines


def _range(low: float | None, high: float | None, form: Callable[[float], str]) -> str:
    return "" if low is None or high is None else f" (90%: {form(low)} to {form(high)})"


def _off(error: float | None) -> str:
    """`, 3.1% above` the prediction, or below."""
    if error is None:
        return ""
    side = "above" if error >= 0 else "below"
    return f", {100 * abs(error):.1f}% {side} it"
