"""GitHub Markdown: a headline, one table, and folds for the rest.

Everything that may hold a name from a trace goes through `escaped` or into a code span, so that
it can mention nobody, link nowhere and close no tag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prompts_agent.agents.report import Change, Config, Proposal, Report
from prompts_agent.report.breakdown import no_times, step_parts
from prompts_agent.report.figures import (
    RUNG_WORDS,
    hbm,
    hbm_share,
    headline,
    latencies,
    share,
    short_sha,
    speedup,
    step_terms,
    step_time,
    title,
)
from prompts_agent.report.opinions import TITLE, opinion_lines, opinion_parts
from prompts_agent.report.references import marks, references
from prompts_agent.report.text import fact_values, filled, plain
from prompts_agent.trace.profile import Fact
from prompts_agent.units import format_bytes, format_seconds

__all__ = ["code", "escaped", "figure", "folds", "foot", "markdown_text", "moves", "opening"]

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_BREAK = "\u200b"
"""A zero-width space: GitHub turns `@name`, `#1`, `GH-1`, `:tada:` and addresses into links and
pictures after Markdown is done, so a backslash does not stop it."""
_AUTOLINKS = (
    (re.compile(r"@(?=\w)"), "@" + _BREAK),
    (re.compile(r"#(?=\d)"), "#" + _BREAK),
    (re.compile(r"\b(GH)-(?=\d)", re.IGNORECASE), r"\1" + _BREAK + "-"),
    (re.compile(r":(?=[\w+-]+:)"), ":" + _BREAK),
    (re.compile(r"://"), ":" + _BREAK + "//"),
    (re.compile(r"\b(www)\.", re.IGNORECASE), r"\1" + _BREAK + "."),
    (re.compile(r"\b([0-9a-f]{6})(?=[0-9a-f])", re.IGNORECASE), r"\1" + _BREAK),
)
_LIST_START = re.compile(r"^(\s*)([-+]|\d+[.)])(?=\s)")


def escaped(text: str) -> str:
    """`text` as Markdown that shows those characters and does nothing."""
    shown = plain(text).strip()
    for pattern, replacement in _AUTOLINKS:
        shown = pattern.sub(replacement, shown)
    shown = "".join(_ENTITIES.get(char, char) for char in shown)
    # The entities' own & and ; are safe; what they replaced is not special any more.
    shown = _SPECIAL.sub(r"\\\1", shown)
    return _LIST_START.sub(r"\1\\\2", shown)


def code(text: str) -> str:
    """A code span. Backticks would end it and become quotes; `|` would end a table's cell and
    becomes a broken bar.
    """
    return "`" + plain(text).replace("`", "'").replace("|", "¦").strip() + "`"


def markdown_text(report: Report) -> str:
    """The report as one comment's worth of Markdown, with a final newline."""
    sections = [
        f"### {escaped(headline(report))}",
        opening(report),
        _table(report),
        *folds(report),
        f"<sub>{foot(report)}</sub>",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def folds(report: Report) -> tuple[str, ...]:
    """Everything below the table, each closed until somebody opens it, most telling first."""
    sections = (
        *(_proposal(proposal, report) for proposal in report.proposals),
        _fold("What the job waits for", _findings(report)),
        _fold(TITLE, _opinion(report)),
        _fold("References", _references(report)),
        _fold("Read with care", _caveats(report)),
        _fold("What was searched", _search(report)),
    )
    return tuple(section for section in sections if section)


def opening(report: Report) -> str:
    """What stands below the headline: why nothing is proposed, and which job this is about."""
    lines = []
    if report.abstained is not None and not report.proposals:
        lines.append(escaped(report.abstained.text))
        lines.append("\n".join(f"- {escaped(step)}" for step in report.abstained.next_steps))
    lines.append(_job(report))
    return "\n\n".join(line for line in lines if line)


def _job(report: Report) -> str:
    pieces = []
    summary = report.workload
    if summary is not None:
        pieces.append(f"{escaped(summary.model)} on {escaped(summary.hardware)}")
        pieces.append(f"{summary.phase}, {summary.global_batch} × {summary.sequence:,} tokens")
        pieces.append(f"for {summary.objective}")
    if report.baseline is not None:
        seconds = report.baseline.measured_step_time_s
        measured = "" if seconds is None else f", {format_seconds(seconds)} a step measured"
        pieces.append(f"today {escaped(title(report.baseline.layout))}{measured}")
    return " · ".join(pieces)


def _table(report: Report) -> str:
    if not report.proposals:
        return ""
    lines = [
        "| | mesh | step (90 %) | speedup (90 %) | HBM | checked |",
        "|--:|:--|--:|--:|--:|:--|",
    ]
    for proposal in report.proposals:
        cells = (
            str(proposal.rank),
            f"**{escaped(title(proposal.layout))}**",
            figure(step_time(proposal.predicted)),
            figure(speedup(proposal.predicted)),
            f"{100 * hbm_share(proposal):.0f} %",
            proposal.rung,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(pair: tuple[str, str]) -> str:
    """`**1.36×** (1.28–1.46×)`."""
    value, bounds = pair
    return f"**{value}** ({bounds})" if bounds else value


def _proposal(proposal: Proposal, report: Report) -> str:
    facts = fact_values(report)
    lines = [f"**Changes**: {moves(proposal.changes)}", "", "**Why**", ""]
    lines += [f"- {_cited(filled(r.text, facts), marks(r))}" for r in proposal.reasons]
    if proposal.tradeoffs:
        lines += ["", "**What it costs**", ""]
        lines += [f"- {escaped(filled(text, facts))}" for text in proposal.tradeoffs]
    parts = [(name, format_seconds(seconds)) for name, seconds in step_terms(proposal)]
    for label, terms in (("Predicted latency", latencies(proposal)), ("Predicted step", parts)):
        if terms:
            made_of = " · ".join(f"{name} {value}" for name, value in terms)
            lines += ["", f"**{label}**: {escaped(made_of)}"]
    lines += ["", f"**HBM**: {hbm(proposal)}"]
    lines += ["", f"**Checked**: {proposal.rung}, {RUNG_WORDS[proposal.rung]}", ""]
    checks = (*proposal.verdict.checks, *proposal.verdict.contradictions)
    lines += [f"- {escaped(check)}" for check in checks]
    if proposal.config is not None:
        lines += ["", *_config(proposal.config)]
    return _fold(f"{proposal.rank}. {title(proposal.layout)}", "\n".join(lines))


def moves(changed: Sequence[Change]) -> str:
    """`fsdp 4 → **16**, tensor 4 → **1**`."""
    said = []
    for change in changed:
        before = "" if change.before is None else f"{escaped(change.before)} → "
        said.append(f"{escaped(change.what.replace('_', ' '))} {before}**{escaped(change.after)}**")
    return ", ".join(said) if said else "none, this is today's layout"


def _config(config: Config) -> list[str]:
    ticks = re.findall(r"`+", config.text + (config.diff or ""))
    longest = max((len(run) for run in ticks), default=0)
    fence = "`" * max(3, longest + 1)
    lines = [f"{fence}{config.language}"]
    lines += [plain(line) for line in config.text.splitlines()]
    lines.append(fence)
    if config.diff is not None:
        lines += ["", "In your config:", "", f"{fence}diff"]
        lines += [*(plain(line) for line in config.diff.splitlines()), fence]
    if config.check_command is not None:
        lines += ["", f"Check it first: {code(config.check_command)}"]
    lines += ["", *(f"- {escaped(note)}" for note in config.notes)]
    return lines


def _cited(text: str, cited: list[str]) -> str:
    return " ".join([escaped(text), *(code(mark) for mark in cited)])


def _findings(report: Report) -> str:
    facts: dict[str, Fact] = fact_values(report)
    lines = [_breakdown(report)]
    for finding in report.findings:
        seconds = finding.seconds_per_step
        stakes = ["seconds unknown" if seconds is None else f"up to {format_seconds(seconds)}"]
        if finding.share is not None:
            stakes.append(share(finding.share))
        stakes.append("a matter of sharding" if finding.is_sharding else "no matter of sharding")
        cited = _cited(filled(finding.detail, facts), [f"f:{name}" for name in finding.fact_ids])
        lines.append(
            f"- **{escaped(filled(finding.title, facts))}** ({', '.join(stakes)})<br>{cited}"
        )
    return "\n".join(line for line in lines if line)


def _breakdown(report: Report) -> str:
    if report.profile is None:
        return ""
    parts = step_parts(report.profile)
    why = no_times(report.profile, parts)
    if why is not None or parts.total_s is None:
        return f"{why}\n"
    lines = ["| part of a step | time | share |", "|:--|--:|--:|"]
    for label, seconds in parts.parts:
        if seconds is None:
            lines.append(f"| {label} | unknown | |")
        else:
            lines.append(
                f"| {label} | {format_seconds(seconds)} | {share(seconds / parts.total_s)} |"
            )
    return "\n".join(lines) + "\n"


def _opinion(report: Report) -> str:
    if report.opinion is None:
        return ""
    lines = [escaped(line) for line in opinion_lines(report.opinion)]
    for part in opinion_parts(report):
        lines += ["", f"**{escaped(part.label)}**", ""]
        lines += [f"- {escaped(line)}" for line in part.lines]
    return "\n".join(lines)


def _references(report: Report) -> str:
    return "\n".join(
        f"- {code(entry.mark)} **{escaped(entry.value)}**, {_source(entry.mark, entry.source)}"
        for entry in references(report)
    )


def _source(mark: str, source: str) -> str:
    """A recipe's source is a link of ours; everything else is text."""
    if mark.startswith("r:") and re.fullmatch(r"https?://[\w./%~?=&#:+-]+", source):
        return f"<{source}>"
    return escaped(source)


def _caveats(report: Report) -> str:
    trace = report.trace.caveats if report.trace is not None else ()
    missing = report.profile.missing if report.profile is not None else ()
    assumed = report.workload.assumptions if report.workload is not None else ()
    lines = [f"- {escaped(text)}" for text in (*trace, *report.caveats)]
    lines += [f"- Missing: {escaped(text)}" for text in missing]
    lines += [f"- Assumed: {escaped(text)}" for text in assumed]
    return "\n".join(lines)


def _search(report: Report) -> str:
    lines = []
    if report.search is not None:
        found = report.search
        lines.append(
            f"- {found.considered:,} layouts considered, {found.legal:,} legal, {found.fit:,} fit"
        )
    for rejection in report.rejected:
        why = escaped("; ".join(rejection.reasons))
        mesh = escaped(title(rejection.layout))
        lines.append(f"- sent back in round {rejection.round}: **{mesh}**: {why}")
    if report.other_objective is not None:
        lines.append(f"- {escaped(report.other_objective)}")
    if report.separate_pools is not None:
        lines.append(f"- {escaped(report.separate_pools)}")
    return "\n".join(lines)


def foot(report: Report) -> str:
    """What the advice was made from: an advice about another trace is a wrong one."""
    read = "no trace"
    if report.trace is not None:
        trace = report.trace
        sha, size = code(short_sha(trace.sha256)), format_bytes(trace.size_bytes)
        read = f"{escaped(trace.format)} {sha}, {size}"
    return f"prompts {escaped(report.tool_version)} · {read}"


def _fold(summary: str, body: str) -> str:
    if not body:
        return ""
    shown = plain(summary)
    for char, entity in _ENTITIES.items():
        shown = shown.replace(char, entity)
    return f"<details><summary>{shown}</summary>\n\n{body}\n\n</details>"
