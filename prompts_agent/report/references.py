"""References: everything that findings and reasons cite, in order of first citation."""

from __future__ import annotations

from typing import NamedTuple

from prompts_agent.agents.placeholders import format_fact
from prompts_agent.agents.report import Proposal, Reason, Report
from prompts_agent.report.figures import term_name
from prompts_agent.report.text import fact_values
from prompts_agent.units import format_bytes, format_seconds

__all__ = ["Reference", "marks", "references"]


class Reference(NamedTuple):
    """`mark` is what stands in the text, e.g. `f:step_time`."""

    mark: str
    value: str
    source: str


def marks(reason: Reason) -> list[str]:
    """`f:` facts, `r:` recipes, `t:` terms of the estimate."""
    return [
        *(f"f:{fact_id}" for fact_id in reason.fact_ids),
        *(f"r:{recipe_id}" for recipe_id in reason.recipe_ids),
        *(f"t:{term_id}" for term_id in reason.term_ids),
    ]


def references(report: Report) -> list[Reference]:
    """One entry a mark. A mark that nothing in the report resolves says so."""
    cited = [f"f:{fact_id}" for finding in report.findings for fact_id in finding.fact_ids]
    for proposal in report.proposals:
        for reason in proposal.reasons:
            cited += marks(reason)
    order = sorted(dict.fromkeys(cited), key=lambda mark: "frt".index(mark[0]))
    return [_resolve(mark, report) for mark in order]


def _resolve(mark: str, report: Report) -> Reference:
    kind, name = mark.split(":", 1)
    if kind == "f":
        fact = fact_values(report).get(name)
        if fact is not None:
            return Reference(mark, format_fact(fact), fact.source)
    if kind == "r":
        for item in report.evidence:
            if item.recipe_id == name:
                return Reference(mark, item.title, item.source)
    if kind == "t":
        values = _term_values(name, report)
        if values:
            return Reference(mark, values, f"the estimate: {term_name(name)}")
    return Reference(mark, "unknown", "the report holds no entry of that name")


def _term_values(name: str, report: Report) -> str:
    values = [
        f"{_term(name, p.terms[name])} in proposal {p.rank}"
        for p in report.proposals
        if name in p.terms and _cites(p, name)
    ]
    if report.baseline is not None and name in report.baseline.terms:
        values.insert(0, f"{_term(name, report.baseline.terms[name])} today")
    return ", ".join(values)


def _cites(proposal: Proposal, term: str) -> bool:
    return any(term in reason.term_ids for reason in proposal.reasons)


def _term(name: str, value: float) -> str:
    if name.endswith("_s"):
        return format_seconds(value)
    return format_bytes(value) if name.endswith("_bytes") else f"{value:.4g}"
