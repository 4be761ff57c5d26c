"""The proposals: a table to compare them, then the case for each."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prompts_agent.agents.report import Change, Config, Proposal, Reason, Report, Rung
from prompts_agent.report.console.bars import fill_bar
from prompts_agent.report.console.layout import bullets, grid, heading, indented
from prompts_agent.report.console.terminal import Pen
from prompts_agent.report.figures import (
    RUNG_WORDS,
    hbm,
    hbm_share,
    key_checks,
    latencies,
    speedup,
    step_terms,
    step_time,
    title,
)
from prompts_agent.report.references import marks
from prompts_agent.report.text import fact_values, filled
from prompts_agent.trace.profile import Fact
from prompts_agent.units import format_seconds

__all__ = ["proposals_section"]

NARROW = 90
"""Columns below which the table leaves to the blocks what they repeat."""
RUNG_STYLES: dict[Rung, str] = {"estimated": "yellow", "compiled": "cyan", "measured": "green"}


def proposals_section(pen: Pen, report: Report, width: int) -> list[RenderableType]:
    """The comparison, a block a proposal, and the config of the first."""
    if not report.proposals:
        return []
    facts = fact_values(report)
    today = report.baseline is not None
    sections: list[RenderableType] = [
        Group(heading(pen, "Proposals"), indented(_table(pen, report.proposals, width)))
    ]
    sections += [_block(pen, proposal, facts, today=today) for proposal in report.proposals]
    config = report.proposals[0].config
    if config is not None:
        sections.append(_config(pen, config))
    return sections


def _table(pen: Pen, proposals: tuple[Proposal, ...], width: int) -> Table:
    wide = width >= NARROW
    table = Table(
        box=box.ASCII_DOUBLE_HEAD if pen.ascii_only else box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        header_style="dim",
        border_style="dim",
        show_edge=False,
    )
    table.add_column("", justify="right", style="bold")
    table.add_column("mesh", overflow="fold")
    table.add_column("step (90 %)" if wide else "step", justify="left")
    gains = any(proposal.predicted.speedup is not None for proposal in proposals)
    if gains:
        table.add_column("speedup", justify="left")
    if wide:
        table.add_column("HBM", no_wrap=True)
    table.add_column("checked")
    for proposal in proposals:
        cells: list[RenderableType] = [
            pen.text(str(proposal.rank)),
            pen.text(title(proposal.layout), "bold"),
            _figure(pen, step_time(proposal.predicted), stacked=not wide),
        ]
        if gains:
            gain = speedup(proposal.predicted)
            cells.append(_figure(pen, gain, stacked=not wide, style="bold green"))
        if wide:
            bar = fill_bar(pen, hbm_share(proposal), 10)
            used = f"{100 * hbm_share(proposal):.0f} %"
            cells.append(pen.join(bar, used, separator=" "))
        cells.append(pen.text(proposal.rung, RUNG_STYLES[proposal.rung]))
        table.add_row(*cells)
    return table


def _figure(pen: Pen, figure: tuple[str, str], *, stacked: bool, style: str = "bold") -> Text:
    value, bounds = figure
    pieces = [pen.text(value, style if value != "unknown" else "italic dim")]
    if bounds:
        pieces.append(pen.text(bounds, "dim"))
    return Text("\n" if stacked else "  ").join(pieces)


def _block(pen: Pen, proposal: Proposal, facts: dict[str, Fact], *, today: bool) -> RenderableType:
    moved = today or any(change.before is not None for change in proposal.changes)
    rows: list[tuple[str, RenderableType]] = [
        ("changes" if moved else "sets", _changes(pen, proposal.changes)),
        ("why", bullets(pen, [_reason(pen, reason, facts) for reason in proposal.reasons])),
    ]
    if proposal.tradeoffs:
        costs = [pen.text(filled(text, facts)) for text in proposal.tradeoffs]
        rows.append(("costs", bullets(pen, costs)))
    made_of = [(name, format_seconds(seconds)) for name, seconds in step_terms(proposal)]
    for label, terms in (("latency", latencies(proposal)), ("step", made_of)):
        if terms:
            rows.append((label, pen.text(" · ".join(f"{name} {value}" for name, value in terms))))
    bar = fill_bar(pen, hbm_share(proposal), 20)
    rows.append(("HBM", pen.join(bar, hbm(proposal), separator=" ")))
    rows.append(("checked", _checked(pen, proposal)))
    name = pen.join(
        pen.text(f"{proposal.rank}  ", "bold cyan"), pen.text(title(proposal.layout), "bold")
    )
    return Group(indented(name, 1), indented(grid(pen, rows, width=7), 4))


def _changes(pen: Pen, changes: tuple[Change, ...]) -> RenderableType:
    if not changes:
        return pen.text("nothing: this is today's layout", "italic")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    arrow = "->" if pen.ascii_only else "→"
    for change in changes:
        moved = Text()
        if change.before is not None:
            moved.append(pen.safe(change.before), "dim")
            moved.append(f" {arrow} ", "dim")
        moved.append(pen.safe(change.after), "bold")
        table.add_row(pen.text(change.what.replace("_", " ")), moved)
    return table


def _reason(pen: Pen, reason: Reason, facts: dict[str, Fact]) -> Text:
    cited = " ".join(f"[{mark}]" for mark in marks(reason))
    return pen.join(filled(reason.text, facts), " ", pen.text(cited, "dim"))


def _checked(pen: Pen, proposal: Proposal) -> RenderableType:
    rung = pen.join(
        pen.text(proposal.rung, RUNG_STYLES[proposal.rung]), ": ", RUNG_WORDS[proposal.rung]
    )
    lines: list[RenderableType] = [rung]
    tick = "+ " if pen.ascii_only else "✓ "
    shown, more = key_checks(proposal.verdict)
    lines += [pen.join(pen.text(tick, "green"), pen.text(check, "dim")) for check in shown]
    if more:
        lines.append(pen.text(f"  and {more} more, all in the JSON report", "dim"))
    lines += [pen.join(pen.text("! ", "red"), text) for text in proposal.verdict.contradictions]
    return Group(*lines)


def _changed(pen: Pen, line: str) -> Text:
    style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "dim")
    text = Text(pen.safe(line), no_wrap=True, overflow="ignore")
    text.stylize(style if style and not line.startswith(("+++", "---")) else "dim")
    return text


def _config(pen: Pen, config: Config) -> RenderableType:
    """No frame around it, so that it can be copied. Lines are never wrapped."""
    lines = [
        Text(pen.safe(line), no_wrap=True, overflow="ignore") for line in config.text.splitlines()
    ]
    rows: list[RenderableType] = [heading(pen, f"Proposal 1 for {config.framework}"), *lines]
    if config.diff is not None:
        rows += [Text(), pen.text("In your config:", "bold")]
        rows += [_changed(pen, line) for line in config.diff.splitlines()]
    if config.check_command is not None:
        rows += [Text(), pen.text("Check it before you run it:", "bold")]
        rows.append(Text(pen.safe(config.check_command), overflow="fold"))
    rows += [pen.text(note, "dim") for note in config.notes]
    return Group(*rows)
