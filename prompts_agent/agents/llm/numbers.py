"""Numbers: everything in a report that a language model must not change, whatever it says."""

from __future__ import annotations

from typing import Any

from prompts_agent.agents.report import Report

__all__ = ["numbers_of"]


def numbers_of(report: Report) -> dict[str, Any]:
    """Comparable with `==`: two reports of one input have the same, with a model and without.

    The order of proposals and of evidence, and sentences, are left out; every proposal's layout,
    estimate, terms and verdict, every finding's seconds and every fact are not.
    """
    return {
        "facts": [fact.model_dump() for fact in report.profile.facts] if report.profile else [],
        "findings": {
            item.id: (item.seconds_per_step, item.share, item.is_sharding)
            for item in report.findings
        },
        "workload": report.workload.model_dump() if report.workload else None,
        "baseline": report.baseline.model_dump() if report.baseline else None,
        "proposals": sorted((_proposal(p) for p in report.proposals), key=str),
        "rejected": sorted(item.layout.model_dump_json() for item in report.rejected),
        "abstained": report.abstained.kind if report.abstained else None,
        "search": report.search.model_dump(exclude={"wall_s"}) if report.search else None,
    }


def _proposal(proposal: Any) -> dict[str, Any]:
    found: dict[str, Any] = proposal.model_dump(
        include={"layout", "changes", "predicted", "rung", "terms"}
    )
    return found | {"legal": proposal.verdict.legal, "fits": proposal.verdict.fits}
