"""Outcome: the proposal that was followed, held against what was then measured."""

from __future__ import annotations

from prompts_agent.agents.comparison.comparison import Outcome
from prompts_agent.agents.comparison.side import Side
from prompts_agent.agents.report import Predicted, Proposal, Report
from prompts_agent.errors import InputError
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Workload

__all__ = ["followed", "outcome", "planned_job"]


def planned_job(report: Report | None) -> Workload | None:
    """The job that the report planned for, without a baseline; None where it does not say."""
    planned = report.workload if report is not None else None
    if planned is None or planned.dims is None:
        return None
    # Reports of before 1.1 hold neither.
    told = {"precision": planned.precision, "traffic": planned.traffic}
    return Workload(
        name=planned.name,
        model=planned.dims,
        topology=parse_topology(planned.hardware),
        phase=planned.phase,
        objective=planned.objective,
        global_batch=planned.global_batch,
        sequence=planned.sequence,
        **{name: value for name, value in told.items() if value is not None},
    )


def followed(report: Report, after: Side, rank: int | None) -> Proposal:
    """The proposal of that rank; without one, the only proposal with AFTER's mesh.

    Raises `InputError` where there is no such proposal, or nothing tells which it was.
    """
    ranks = ", ".join(str(proposal.rank) for proposal in report.proposals)
    if not report.proposals:
        raise InputError(
            "the report holds no proposal",
            rule="a prediction is checked for a proposal that was followed",
            cure="Compare without --proposal.",
        )
    if rank is not None:
        for proposal in report.proposals:
            if proposal.rank == rank:
                return proposal
        raise InputError(
            f"rank {rank}", rule=f"the report's proposals are {ranks}", cure="Give one of them."
        )
    same = [p for p in report.proposals if after.degrees == p.layout.mesh.used()]
    if len(same) == 1:
        return same[0]
    ran = after.mesh_text or "not named by the trace"
    raise InputError(
        f"the mesh that ran after: {ran}",
        rule=f"it is not that of exactly one of the report's proposals {ranks}",
        cure="Say which one was followed with --rank.",
    )


def outcome(
    report: Report,
    proposal: Proposal,
    before: Side,
    after: Side,
    *,
    alike: bool,
    gain: float | None,
) -> Outcome:
    """Predicted against measured, or why the two are not held against each other."""
    predicted = proposal.predicted
    plain = Outcome(
        rank=proposal.rank,
        layout=proposal.layout,
        predicted_gain=predicted.speedup,
        gain_low=predicted.speedup_low,
        gain_high=predicted.speedup_high,
        measured_gain=gain,
        predicted_step_time_s=predicted.step_time_s,
        step_low_s=predicted.low_s,
        step_high_s=predicted.high_s,
        measured_step_time_s=after.step_s,
        not_scored=_why_not(report, proposal, before, after, alike=alike),
    )
    return plain if plain.not_scored else plain.model_copy(update=_errors(plain, predicted))


def _errors(plain: Outcome, predicted: Predicted) -> dict[str, float | bool | None]:
    gain_error = step_error = inside = None
    if plain.measured_gain is not None and predicted.speedup:
        gain_error = plain.measured_gain / predicted.speedup - 1.0
        inside = _within(plain.measured_gain, predicted.speedup_low, predicted.speedup_high)
    if predicted.step_time_s:
        step_error = plain.measured_step_time_s / predicted.step_time_s - 1.0
        if gain_error is None:
            inside = _within(plain.measured_step_time_s, predicted.low_s, predicted.high_s)
    return {"gain_error": gain_error, "step_error": step_error, "inside": inside}


def _within(value: float, low: float | None, high: float | None) -> bool | None:
    return None if low is None or high is None else low <= value <= high


def _why_not(
    report: Report, proposal: Proposal, before: Side, after: Side, *, alike: bool
) -> str | None:
    """The first reason for which predicted and measured are of different things."""
    if not alike:
        return "the two runs are not of one job"
    wanted = proposal.layout.mesh.used()
    if after.degrees is not None and after.degrees != wanted:
        return f"the mesh that ran after is {after.mesh_text}, not the proposal's {proposal.layout}"
    today = report.baseline.layout.mesh.used() if report.baseline is not None else None
    if today is not None and before.degrees is not None and before.degrees != today:
        named = " × ".join(f"{axis} {today[axis]}" for axis in Axis if axis in today)
        return f"the report starts from {named or 'one device'}, and BEFORE ran {before.mesh_text}"
    return _other_job(report, before)


def _other_job(report: Report, before: Side) -> str | None:
    """The report's workload against what BEFORE tells of itself."""
    planned = report.workload
    if planned is None:
        return None
    devices = before.profile.devices_in_job
    if devices is not None and devices != planned.devices:
        return f"the report is for {planned.devices} devices, and BEFORE ran on {devices}"
    told = before.told
    if told is not None and (told.global_batch, told.sequence) != (
        planned.global_batch,
        planned.sequence,
    ):
        return (
            f"the report is for a batch of {planned.global_batch} × {planned.sequence} tokens, and "
            f"BEFORE ran {told.global_batch} × {told.sequence}"
        )
    return None
