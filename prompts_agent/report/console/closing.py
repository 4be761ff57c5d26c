"""The end of the page: evidence, references, what is missing, what was searched, how to go on."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from prompts_agent.agents.report import Report
from prompts_agent.report.console.layout import bullets, grid, heading, indented
from prompts_agent.report.console.terminal import Pen
from prompts_agent.report.figures import title
from prompts_agent.report.references import references

__all__ = ["closing_sections"]


def closing_sections(pen: Pen, report: Report) -> list[RenderableType]:
    """Those that have something to say."""
    found = (
        _evidence(pen, report),
        _references(pen, report),
        _caveats(pen, report),
        _search(pen, report),
        _go_on(pen, report),
    )
    return [section for section in found if section is not None]


def _evidence(pen: Pen, report: Report) -> RenderableType | None:
    if not report.evidence:
        return None
    rows: list[RenderableType] = []
    for item in report.evidence:
        rows.append(pen.join(pen.text(item.title, "bold"), f" [r:{item.recipe_id}]"))
        if item.reasons:
            # The first says what the recipe does here; how it was found is in the JSON.
            rows.append(indented(pen.text(item.reasons[0], "dim")))
        rows.append(indented(Text(pen.safe(item.source), style="blue", overflow="fold")))
    return Group(heading(pen, "Evidence"), indented(Group(*rows)))


def _references(pen: Pen, report: Report) -> RenderableType | None:
    entries = [entry for entry in references(report) if not entry.mark.startswith("r:")]
    if not entries:
        return None
    rows = [
        pen.join(
            pen.text(f"[{entry.mark}]  ", "cyan"),
            pen.text(entry.value, "bold"),
            pen.text(f"  {entry.source}", "dim"),
        )
        for entry in entries
    ]
    return Group(heading(pen, "References"), indented(Group(*rows)))


def _caveats(pen: Pen, report: Report) -> RenderableType | None:
    trace = report.trace.caveats if report.trace is not None else ()
    missing = report.profile.missing if report.profile is not None else ()
    assumed = report.workload.assumptions if report.workload is not None else ()
    rows: list[tuple[str, RenderableType]] = []
    for label, texts in (
        ("caveats", (*trace, *report.caveats)),
        ("missing", missing),
        ("assumed", assumed),
    ):
        if texts:
            rows.append((label, bullets(pen, [pen.text(text) for text in texts])))
    if not rows:
        return None
    return Group(heading(pen, "Read with care"), indented(grid(pen, rows, width=8)))


def _search(pen: Pen, report: Report) -> RenderableType | None:
    search = report.search
    if search is None and not report.rejected:
        return None
    rows: list[Text] = []
    if search is not None:
        took = "" if search.wall_s is None else f", in {search.wall_s:.1f} s"
        counts = f"{search.considered:,} layouts considered, {search.legal:,} legal, "
        rows.append(pen.text(f"{counts}{search.fit:,} fit{took}"))
    rows += [
        pen.join(
            "sent back in round ",
            str(rejection.round),
            ": ",
            pen.text(title(rejection.layout), "bold"),
            ": ",
            "; ".join(rejection.reasons),
        )
        for rejection in report.rejected
    ]
    return Group(heading(pen, "What was searched"), indented(bullets(pen, rows)))


def _go_on(pen: Pen, report: Report) -> RenderableType | None:
    rows: list[Text] = []
    if report.other_objective is not None:
        rows.append(pen.text(report.other_objective))
    if report.separate_pools is not None:
        rows.append(pen.text(report.separate_pools))
    if report.proposals:
        ranks = "|".join(str(p.rank) for p in report.proposals)
        rows.append(
            pen.join(
                "Keep the report with ",
                pen.text("-o report.json", "bold"),
                "; then ",
                pen.text(f"prompts emit report.json --rank {ranks}", "bold"),
                " writes a proposal for your framework.",
            )
        )
    elif report.abstained is not None and report.abstained.kind == "cannot_tell":
        rows.append(
            pen.join(
                pen.text("prompts doctor TRACE", "bold"), " says what a trace holds and lacks."
            )
        )
    if report.proposals and report.profile is not None and not report.profile.structure_only:
        rows.append(
            pen.join(
                "Once it ran, ",
                pen.text("prompts compare report.json NEW_TRACE --proposal report.json", "bold"),
                " says what it brought and how far the prediction was off.",
            )
        )
    if not rows:
        return None
    return Group(heading(pen, "How to go on"), indented(bullets(pen, rows)))
