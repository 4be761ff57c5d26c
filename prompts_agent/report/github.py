"""The comment on a pull request: what changes and what it gains, one table, the rest folded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prompts_agent.agents.report import Change, Proposal, Report
from prompts_agent.errors import InputError
from prompts_agent.layout.mesh import Axis
from prompts_agent.report.figures import hbm_share, headline, speedup, step_time, title
from prompts_agent.report.markdown import code, escaped, figure, folds, foot, moves, opening
from prompts_agent.report.redact import redacted

__all__ = ["COMMENT_LIMIT", "github_text", "marker"]

COMMENT_LIMIT = 65_536
"""Characters of a comment that GitHub stores; a longer one is refused with 422."""
_TAG = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_AXES = frozenset(axis.value for axis in Axis)


def marker(tag: str) -> str:
    """The invisible line by which a later run finds its own comment.

    Raises `InputError` for a tag that could end the HTML comment.
    """
    if not _TAG.fullmatch(tag):
        raise InputError(
            f"tag {tag!r}",
            rule="a tag is 1 to 64 letters, digits, dots, dashes or underscores",
            cure="Give a plain word, for example the job's name.",
        )
    return f"<!-- prompts:{tag} -->"


def github_text(
    report: Report,
    *,
    commit: str | None = None,
    tag: str = "sharding",
    redact: bool = True,
    limit: int = COMMENT_LIMIT,
) -> str:
    """Markdown of at most `limit` characters, with a final newline.

    `commit` is what the advice was made for: read beside another commit it may be wrong. Folds
    that do not fit are left out, last first, and counted.
    """
    shown = redacted(report) if redact else report
    top = [marker(tag), f"### {_headline(shown)}", opening(shown), _table(shown)]
    made_for = "" if commit is None else f"for commit {code(commit[:12])} · "
    kept_out = " · names, paths and hosts left out" if redact else ""
    last = f"<sub>{made_for}{foot(shown)}{kept_out}</sub>"
    return _within(top, folds(shown), last, limit)


def _within(top: Sequence[str], folded: Sequence[str], last: str, limit: int) -> str:
    for kept in range(len(folded), -1, -1):
        left_out = len(folded) - kept
        what = "section does" if left_out == 1 else "sections do"
        note = f"<sub>{left_out} {what} not fit into a comment.</sub>" if left_out else ""
        sections = [*top, *folded[:kept], note, last]
        text = "\n\n".join(section for section in sections if section) + "\n"
        if len(text) <= limit:
            return text
    return text[: limit - 2] + "…\n"


def _headline(report: Report) -> str:
    """What changes, the gain with its interval, and the rung."""
    if not report.proposals or report.baseline is None:
        return escaped(headline(report))
    best = report.proposals[0]
    gain, bounds = speedup(best.predicted)
    within = f" (90 %: {bounds})" if bounds else ""
    what = moves(_axis_changes(best)) if _axis_changes(best) else "same mesh, other knobs"
    return f"{what}: {gain} today's throughput{within}, {best.rung}"


def _axis_changes(proposal: Proposal) -> list[Change]:
    return [change for change in proposal.changes if change.what in _AXES]


def _table(report: Report) -> str:
    if not report.proposals:
        return ""
    # Without today's layout there is nothing to change and nothing to be faster than.
    known = report.baseline is not None
    lines = [
        f"| | mesh |{' changes | speedup (90 %) |' if known else ''} step (90 %) | HBM | checked |",
        f"|--:|:--|{':--|--:|' if known else ''}--:|--:|:--|",
    ]
    for proposal in report.proposals:
        gain = [moves(proposal.changes), figure(speedup(proposal.predicted))]
        cells = [
            str(proposal.rank),
            f"**{escaped(title(proposal.layout))}**",
            *(gain if known else []),
            figure(step_time(proposal.predicted)),
            f"{100 * hbm_share(proposal):.0f} %",
            proposal.rung,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
