"""The top of the page: the answer, then what was read and what was planned for."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from prompts_agent.agents.report import Baseline, Report
from prompts_agent.report.breakdown import no_times, step_parts
from prompts_agent.report.console.bars import step_bar
from prompts_agent.report.console.layout import bullets, grid, heading, indented
from prompts_agent.report.console.terminal import Pen
from prompts_agent.report.figures import hbm, headline, short_sha, title
from prompts_agent.units import format_bytes, format_seconds

__all__ = ["answer", "facts_grid", "step_section"]


def answer(pen: Pen, report: Report) -> RenderableType:
    """The headline in a frame: green for proposals, yellow for an abstention."""
    lines: list[RenderableType] = [pen.text(headline(report), "bold")]
    abstained = report.abstained
    if abstained is not None and not report.proposals:
        lines.append(pen.text(abstained.text))
        if abstained.next_steps:
            lines += [Text(), pen.text("What to do", "bold")]
            lines.append(bullets(pen, [pen.text(step) for step in abstained.next_steps]))
    elif report.proposals:
        best = report.proposals[0]
        count = len(report.proposals)
        lines.append(
            pen.text(
                f"{best.rung} · {hbm(best)} HBM · first of {count} "
                f"proposal{'s' if count > 1 else ''}",
                "dim",
            )
        )
    return Panel(
        Group(*lines),
        box=box.ASCII if pen.ascii_only else box.ROUNDED,
        border_style="green" if report.proposals else "yellow",
        padding=(0, 1),
        expand=True,
    )


def facts_grid(pen: Pen, report: Report) -> RenderableType:
    """What was read, on what, for what; only what is known."""
    rows: list[tuple[str, RenderableType]] = []
    if report.trace is not None:
        files = f"{report.trace.files} file{'s' if report.trace.files != 1 else ''}"
        size = format_bytes(report.trace.size_bytes)
        sha = short_sha(report.trace.sha256)
        rows.append(("read", pen.text(f"{report.trace.format}, {files}, {size} · sha256 {sha}")))
    else:
        rows.append(("read", pen.text("a workload, no trace: nothing here was measured")))
    if report.profile is not None:
        rows.append(("device", pen.text(_device(report))))
    summary = report.workload
    if summary is not None:
        batch = f"{summary.global_batch} × {summary.sequence:,} tokens"
        rows.append(
            ("model", pen.join(pen.text(summary.model, "bold"), f" · {summary.phase}, {batch}"))
        )
        rows.append(("hardware", pen.text(f"{summary.hardware} · {summary.devices} devices")))
        rows.append(("objective", pen.text(str(summary.objective))))
    if report.baseline is None and report.profile is not None and report.profile.mesh:
        mesh = " × ".join(f"{axis.name} {axis.size}" for axis in report.profile.mesh)
        found = f" · {report.profile.mesh_source}" if report.profile.mesh_source else ""
        rows.append(("mesh", pen.join(pen.text(mesh, "bold"), pen.text(found, "dim"))))
    if report.baseline is not None:
        rows.append(("today", _today(pen, report.baseline)))
    return grid(pen, rows)


def _device(report: Report) -> str:
    profile = report.profile
    if profile is None:
        return "unknown"
    job = "unknown" if profile.devices_in_job is None else str(profile.devices_in_job)
    hosts = f"{profile.hosts} host{'s' if profile.hosts != 1 else ''}"
    seen = f"{profile.devices_in_trace} in the trace"
    return f"{profile.device_label}: {seen}, {job} in the job, {hosts}"


def _today(pen: Pen, baseline: Baseline) -> Text:
    pieces = [pen.text(title(baseline.layout), "bold")]
    if baseline.measured_step_time_s is not None:
        pieces.append(pen.text(f"{format_seconds(baseline.measured_step_time_s)} a step measured"))
    elif baseline.predicted_step_time_s is not None:
        pieces.append(
            pen.text(f"{format_seconds(baseline.predicted_step_time_s)} a step estimated")
        )
    if baseline.hbm_bytes is not None:
        pieces.append(pen.text(f"{format_bytes(baseline.hbm_bytes)} HBM"))
    pieces.append(pen.text(f"from {baseline.source}", "dim"))
    return pen.join(*pieces, separator=" · ")


def step_section(pen: Pen, report: Report, width: int) -> RenderableType | None:
    """The stacked bar; a sentence where times mean nothing or are missing."""
    profile = report.profile
    if profile is None:
        return None
    parts = step_parts(profile)
    why = no_times(profile, parts)
    if why is not None or parts.total_s is None:
        return Group(heading(pen, "Where a step goes"), indented(pen.text(why or "", "italic")))
    step = profile.step
    whole = "Where a step of" if step is not None else "No step was found; where all"
    name = f"{whole} {format_seconds(parts.total_s)} {'goes' if step is not None else 'go'}"
    rows: list[RenderableType] = [heading(pen, name), indented(step_bar(pen, parts, width - 4))]
    if step is not None:
        median, low, high = map(format_seconds, (step.median_s, step.min_s, step.max_s))
        spread = f"one run of {step.program}"
        if step.count > 1:
            spread = f"{step.count} runs of {step.program}, median {median}, {low} to {high}"
        rows.append(indented(pen.text(spread, "dim")))
    return Group(*rows)
