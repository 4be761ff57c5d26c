"""Gate: whether a change may pass. What cannot be told does not pass a gate that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from prompts_agent.agents.report import Report
from prompts_agent.errors import InputError
from prompts_agent.record import Record
from prompts_agent.units import format_bytes, format_seconds

__all__ = ["TIE", "Gate", "Outcome", "gates", "judge"]

TIE = 1.03
"""Times that differ by less are called equal, here as in the evaluation."""


class Gate(StrEnum):
    """What must not happen."""

    REGRESSION = "regression"
    """The job's layout is slower than in the report that it is held against."""
    OOM = "oom"
    """The job's layout does not fit into memory, or no layout does."""
    UNVERIFIED = "unverified"
    """The first proposal was not compiled."""


class Outcome(Record):
    """One gate's answer and the sentence that says why."""

    gate: Gate
    result: Literal["passed", "failed", "inconclusive"]
    why: str

    @property
    def holds_up(self) -> bool:
        """Whether this gate stops the change."""
        return self.result != "passed"


def gates(text: str) -> tuple[Gate, ...]:
    """`oom, regression` → those gates. Raises `InputError` for another name, or none."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in set(Gate)]
    if unknown or not names:
        raise InputError(
            f"gates {text!r}",
            rule=f"{unknown[0]!r} is no gate" if unknown else "no gate is named",
            cure=f"Give any of {', '.join(Gate)}, with commas between them.",
        )
    return tuple(Gate(name) for name in names)


def judge(report: Report, gates: Sequence[Gate], against: Report | None = None) -> list[Outcome]:
    """One outcome a gate, in the order asked for."""
    return [_judge(gate, report, against) for gate in dict.fromkeys(gates)]


def _judge(gate: Gate, report: Report, against: Report | None) -> Outcome:
    match gate:
        case Gate.REGRESSION:
            result, why = _regression(report, against)
        case Gate.OOM:
            result, why = _oom(report)
        case Gate.UNVERIFIED:
            result, why = _unverified(report)
    return Outcome(gate=gate, result=result, why=why)


_Answer = tuple[Literal["passed", "failed", "inconclusive"], str]


def _regression(report: Report, against: Report | None) -> _Answer:
    if against is None:
        return "inconclusive", "there is no report to compare with"
    differs = _differences(report, against)
    if differs:
        return "inconclusive", f"the two reports are of different jobs: {', '.join(differs)}"
    now, then, kind = _step_times(report, against)
    if now is None or then is None:
        return "inconclusive", "one of the reports knows no step time of the job's own layout"
    said = f"{kind} {format_seconds(now)} a step, before {format_seconds(then)}"
    return ("failed" if now > TIE * then else "passed"), f"{said} ({now / then:.2f}×)"


def _differences(report: Report, against: Report) -> list[str]:
    one, other = report.workload, against.workload
    if one is None or other is None:
        return ["the workload of one is unknown"]
    names = ("model", "hardware", "phase", "global_batch", "sequence")
    return [
        f"{name.replace('_', ' ')} {getattr(other, name)} → {getattr(one, name)}"
        for name in names
        if getattr(one, name) != getattr(other, name)
    ]


def _step_times(report: Report, against: Report) -> tuple[float | None, float | None, str]:
    """Both measured, or else both predicted: one of each would compare the estimate with itself."""
    one, other = report.baseline, against.baseline
    if one is None or other is None:
        return None, None, ""
    if one.measured_step_time_s is not None and other.measured_step_time_s is not None:
        return one.measured_step_time_s, other.measured_step_time_s, "measured"
    return one.predicted_step_time_s, other.predicted_step_time_s, "predicted"


def _oom(report: Report) -> _Answer:
    if report.abstained is not None and report.abstained.kind == "nothing_fits":
        return "failed", report.abstained.text
    limits = [proposal.predicted.hbm_limit_bytes for proposal in report.proposals]
    held = None if report.baseline is None else report.baseline.hbm_bytes
    if report.baseline is not None:
        if held is None or not limits:
            return "inconclusive", "the memory of the job's own layout is not known"
        said = f"the job's own layout needs {format_bytes(held)} of {format_bytes(limits[0])}"
        return ("failed" if held > limits[0] else "passed"), said
    if limits:
        return "passed", "every proposal fits by its upper memory estimate"
    return "inconclusive", "no layout was estimated"


def _unverified(report: Report) -> _Answer:
    if not report.proposals:
        kind = None if report.abstained is None else report.abstained.kind
        if kind in ("not_sharding", "already_best"):
            return "passed", "nothing is proposed"
        return "inconclusive", "there is no proposal that could have been checked"
    rung = report.proposals[0].rung
    return ("failed" if rung == "estimated" else "passed"), f"the first proposal is {rung}"
