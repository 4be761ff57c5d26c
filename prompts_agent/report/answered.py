"""Whether a report answers anything: the difference between exit codes 0 and 3."""

from __future__ import annotations

from prompts_agent.agents.report import Report
from prompts_agent.knowledge.vocabulary import FindingKind

__all__ = ["is_silent"]


def is_silent(report: Report) -> bool:
    """The input was read and told nothing; every other answer is one."""
    told = [f for f in report.findings if f.kind is not FindingKind.TRACE_TOO_POOR]
    return report.abstained is not None and report.abstained.kind == "cannot_tell" and not told
