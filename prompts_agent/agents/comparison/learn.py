"""Learning: two traces in, their comparison and the case that it makes out."""

from __future__ import annotations

from prompts_agent.agents.comparison.case import case_of
from prompts_agent.agents.comparison.compare import compare
from prompts_agent.agents.comparison.comparison import Comparison
from prompts_agent.agents.comparison.likeness import contradictions
from prompts_agent.agents.comparison.outcome import followed
from prompts_agent.agents.comparison.side import Given, side_of
from prompts_agent.agents.report import Report
from prompts_agent.errors import InputError
from prompts_agent.knowledge.recipe import Recipe

__all__ = ["learn"]


def learn(
    before: Given,
    after: Given,
    report: Report | None = None,
    rank: int | None = None,
    change: str | None = None,
) -> tuple[Comparison, Recipe]:
    """Raises what `compare_traces` and `case_of` raise."""
    one, two = side_of(before, "BEFORE"), side_of(after, "AFTER")
    said = (*contradictions(one), *contradictions(two))
    if said:
        raise InputError(
            said[0],
            rule="a case is of the job that ran",
            cure="Correct the workload file, or leave it out: the traces tell the job.",
        )
    found = compare(one, two, report, rank)
    proposal = None if report is None else followed(report, two, rank)
    return found, case_of(found, two.job.workload or one.job.workload, proposal, change)
