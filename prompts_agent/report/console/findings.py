"""What the job waits for: the findings, costliest first."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prompts_agent.agents.finding import Finding
from prompts_agent.agents.report import Report
from prompts_agent.report.console.layout import heading, indented
from prompts_agent.report.console.terminal import Pen
from prompts_agent.report.figures import share
from prompts_agent.report.text import fact_values, filled
from prompts_agent.units import format_seconds

__all__ = ["findings_section"]


def findings_section(pen: Pen, report: Report) -> RenderableType | None:
    """A block a finding: title, seconds and share, whether it is sharding, what it means."""
    if not report.findings:
        return None
    facts = fact_values(report)
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(style="dim", justify="right", width=2)
    table.add_column(ratio=1, overflow="fold")
    for number, finding in enumerate(report.findings, 1):
        lines: list[RenderableType] = [
            pen.text(filled(finding.title, facts), "bold"),
            _stakes(pen, finding),
            pen.text(filled(finding.detail, facts)),
        ]
        if finding.fact_ids:
            cited = " ".join(f"[f:{fact_id}]" for fact_id in finding.fact_ids)
            lines.append(pen.text(cited, "dim"))
        if number < len(report.findings):
            lines.append(Text())
        table.add_row(str(number), Group(*lines))
    # Of a program whose times mean nothing, only its structure can be found fault with.
    structure = report.profile is not None and report.profile.structure_only
    title = "What the program shows" if structure else "What the job waits for"
    return Group(heading(pen, title), indented(table, 0))


def _stakes(pen: Pen, finding: Finding) -> Text:
    pieces = []
    if finding.seconds_per_step is None:
        pieces.append(pen.text("seconds unknown", "dim"))
    else:
        pieces.append(
            pen.text(f"up to {format_seconds(finding.seconds_per_step)} a step", "yellow")
        )
    if finding.share is not None:
        pieces.append(pen.text(share(finding.share), "yellow"))
    sharding = "a matter of sharding" if finding.is_sharding else "no matter of sharding"
    pieces.append(pen.text(sharding, "green" if finding.is_sharding else "magenta"))
    if finding.axis is not None:
        pieces.append(pen.text(f"axis {finding.axis}"))
    return pen.join(*pieces, separator=" · ")
