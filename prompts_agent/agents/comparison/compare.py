"""Comparing: two sides in, one Comparison out."""

from __future__ import annotations

from typing import Literal

from prompts_agent import __version__
from prompts_agent.agents.comparison.comparison import Comparison, Likeness, Run, Shift
from prompts_agent.agents.comparison.likeness import contradictions, likeness
from prompts_agent.agents.comparison.noise import noise_of, spread_of
from prompts_agent.agents.comparison.outcome import followed, outcome
from prompts_agent.agents.comparison.shifts import finding_shifts, part_shifts, shift
from prompts_agent.agents.comparison.side import Given, Side, side_of
from prompts_agent.agents.model_text import dims_text
from prompts_agent.agents.planner.case import Case, changes_from_today
from prompts_agent.agents.report import Change, Report
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.workload.workload import Workload

__all__ = ["compare", "compare_traces"]

_TOKENS = frozenset({"global batch", "sequence"})
"""May differ and still be compared, by tokens per second."""


def compare_traces(
    before: Given, after: Given, report: Report | None = None, rank: int | None = None
) -> Comparison:
    """Reads both runs and compares them; `report` and `rank` name the proposal that was followed.

    Raises `TraceError` and its kin, `NotDiagnosableError` where a trace tells no step time, and
    `InputError` where nothing tells which proposal was followed.
    """
    return compare(side_of(before, "BEFORE"), side_of(after, "AFTER"), report, rank)


def compare(
    before: Side, after: Side, report: Report | None = None, rank: int | None = None
) -> Comparison:
    """What changed between the two sides."""
    found = likeness(before, after)
    differing = {item.what for item in found if item.same is False}
    noise = noise_of(before, after)
    step = shift("step", before.step_s, after.step_s, noise)
    alike = not differing
    gain = _gain(before, after, differing)
    followed_one = None if report is None else followed(report, after, rank)
    return Comparison(
        tool_version=__version__,
        before=_run(before),
        after=_run(after),
        likeness=found,
        alike=alike,
        job=_job_text(after.job.workload or before.job.workload),
        changes=_changes(before, after),
        noise=noise,
        step=step,
        gain=gain,
        direction=_direction(step),
        parts=part_shifts(before, after, noise),
        findings=finding_shifts(before, after, noise),
        outcome=None
        if report is None or followed_one is None
        else outcome(report, followed_one, before, after, alike=alike, gain=gain),
        caveats=(*_caveats(before, after, found), *_other_trace(report, before)),
    )


def _run(side: Side) -> Run:
    step = side.profile.step
    return Run(
        trace=side.trace,
        mesh=side.mesh_text,
        degrees=side.degrees,
        step_time_s=side.step_s,
        steps=step.count if step is not None else 0,
        spread_s=spread_of(side.profile),
        hbm_peak_bytes=side.profile.hbm_peak_bytes,
    )


def _changes(before: Side, after: Side) -> tuple[Change, ...]:
    """Axes whose degree differs. A trace does not tell the knobs."""
    if before.degrees is None or after.degrees is None:
        return ()
    ran = Layout(mesh=Mesh.model_validate(after.degrees))
    found = changes_from_today(Case(traced=before.degrees), ran)
    return tuple(change for change in found if change.what in set(Axis))


def _gain(before: Side, after: Side, differing: set[str]) -> float | None:
    ratio = before.step_s / after.step_s
    if not differing & _TOKENS:
        return ratio
    one, two = before.told, after.told
    if one is None or two is None:
        return None
    return ratio * (two.global_batch * two.sequence) / (one.global_batch * one.sequence)


def _direction(step: Shift) -> Literal["faster", "slower", "within_noise", "unknown"]:
    if step.within_noise is None or step.change_s is None:
        return "unknown"
    if step.within_noise:
        return "within_noise"
    return "faster" if step.change_s < 0 else "slower"


def _job_text(workload: Workload | None) -> str | None:
    if workload is None:
        return None
    tokens = f"{workload.global_batch} × {workload.sequence:,} tokens"
    return f"{dims_text(workload.model)}; {workload.phase}, {tokens}, on {workload.topology}"


def _caveats(before: Side, after: Side, found: tuple[Likeness, ...]) -> tuple[str, ...]:
    differing = dict.fromkeys((*contradictions(before), *contradictions(after)))
    said = [f"Of the job, {text}." for text in differing]
    unknown = [item.what for item in found if item.same is None]
    if unknown:
        said.append(
            f"The traces do not both tell {', '.join(unknown)}; that they are equal is taken from "
            "you."
        )
    if (before.trace and after.trace) and before.trace.sha256 == after.trace.sha256:
        said.append("BEFORE and AFTER are the same trace.")
    unknown_mesh = before.degrees is None or after.degrees is None
    if unknown_mesh and before.mesh_text != after.mesh_text:
        said.append("What the mesh's axes mean is not known of both runs: no changes are listed.")
    return tuple(said)


def _other_trace(report: Report | None, before: Side) -> tuple[str, ...]:
    """A prediction is a ratio to what the report read, which may have been another run."""
    read = report.trace if report is not None else None
    if read is None or before.trace is None or read.sha256 == before.trace.sha256:
        return ()
    return ("The report was made from another trace than BEFORE, so today's step may differ.",)
