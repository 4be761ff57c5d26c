"""Proposals, caveats and the other objective, in words whose numbers code has filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from prompts_agent.agents.critic.review import Review
from prompts_agent.agents.finding import Finding
from prompts_agent.agents.placeholders import fill
from prompts_agent.agents.report import Abstention, Proposal, Reason
from prompts_agent.layout.diff import same_degrees
from prompts_agent.layout.layout import Layout
from prompts_agent.trace.profile import Fact
from prompts_agent.workload.workload import Objective

if TYPE_CHECKING:
    from prompts_agent.agents.planner.board import Board
    from prompts_agent.agents.planner.draft import Draft
    from prompts_agent.agents.planner.search import Found

__all__ = ["caveats", "filled_abstention", "filled_findings", "other_objective", "proposals"]


def filled_findings(findings: Iterable[Finding], facts: Sequence[Fact]) -> tuple[Finding, ...]:
    """The findings with every placeholder replaced by its value."""
    return tuple(
        f.model_copy(update={"title": fill(f.title, facts), "detail": fill(f.detail, facts)})
        for f in findings
    )


def filled_abstention(abstention: Abstention | None, facts: Sequence[Fact]) -> Abstention | None:
    """The abstention with every placeholder replaced by its value."""
    if abstention is None:
        return None
    return abstention.model_copy(
        update={
            "text": fill(abstention.text, facts),
            "next_steps": tuple(fill(step, facts) for step in abstention.next_steps),
        }
    )


def proposals(
    board: Board, reviews: Sequence[Review], facts: Sequence[Fact]
) -> tuple[Proposal, ...]:
    """The drafts that passed, ranked from 1 in the order of the board."""
    pairs = zip(board.drafts, reviews, strict=True)
    passed = [(draft, review) for draft, review in pairs if review.passed]
    ranks = {draft.layout: rank for rank, (draft, _) in enumerate(passed, start=1)}
    return tuple(_proposal(ranks, draft, review, facts) for draft, review in passed)


def _proposal(
    ranks: Mapping[Layout, int], draft: Draft, review: Review, facts: Sequence[Fact]
) -> Proposal:
    neighbours = {"other:name": draft.other, "above:name": draft.above}
    named = {
        name: f"proposal {ranks[layout]}"
        for name, layout in neighbours.items()
        if layout is not None and layout in ranks
    }

    def said(text: str) -> str:
        return fill(text, facts, draft.figures | named)

    return Proposal(
        rank=ranks[draft.layout],
        layout=draft.layout,
        changes=draft.changes,
        predicted=draft.candidate.predicted,
        rung=review.verdict.rung,
        verdict=review.verdict,
        reasons=tuple(
            r.model_copy(update={"text": said(r.text)}) for r in _standing_reasons(draft, named)
        ),
        tradeoffs=tuple(said(text) for text in draft.tradeoffs),
        terms=draft.candidate.terms,
        factors=draft.candidate.factors,
    )


def _standing_reasons(draft: Draft, named: Mapping[str, str]) -> tuple[Reason, ...]:
    """Without comparisons with a layout that was sent back, unless there is nothing else."""
    gone = [name for name in ("other:name", "above:name") if name not in named]
    kept = [r for r in draft.reasons if not any(f"{{{name}}}" in r.text for name in gone)]
    return tuple(kept) or draft.reasons


def caveats(found: Found | None) -> tuple[str, ...]:
    """What a reader must know of the search."""
    if found is None:
        return ()
    said = []
    if not found.today_measured:
        said.append(
            "Predicted times rest on no measured step: trust their order more than their values."
        )
    if not found.surely_fits and found.candidates:
        said.append(
            "No layout surely fits: the upper end of every memory estimate is above the limit. "
            "Compile or try the proposals before relying on them."
        )
    return tuple(said)


def other_objective(found: Found | None, proposed: Sequence[Proposal]) -> str | None:
    """What the best mesh would be under the objective that pulls the other way, a sentence."""
    if found is None or not proposed:
        return None
    for objective, candidate in found.others.items():
        if same_degrees(candidate.layout, proposed[0].layout):
            return f"For {objective} the first mesh would be the same."
        return f"For {objective} the first mesh would be {candidate.layout}{_metric(objective)}."
    return None


def _metric(objective: Objective) -> str:
    return " (shortest step)" if objective is Objective.LATENCY else " (most tokens per second)"
