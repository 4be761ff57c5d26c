"""Candidate and Draft: a layout with its estimate, and that layout argued for."""

from __future__ import annotations

from pydantic import Field

from prompts_agent.agents.report import Change, Predicted, RankFactors, Reason
from prompts_agent.layout.layout import Layout
from prompts_agent.record import Record

__all__ = ["Candidate", "Draft"]


class Candidate(Record):
    """A legal layout as the estimator sees it, in the order of the ranking."""

    layout: Layout
    predicted: Predicted
    hbm_high_bytes: int
    """Upper end of the memory estimate: what must fit."""
    terms: dict[str, float] = Field(default_factory=dict)
    factors: RankFactors | None = None


class Draft(Record):
    """A candidate with its case. Texts are templates; `figures` holds what placeholders other than
    facts stand for (see `placeholders`).
    """

    candidate: Candidate
    changes: tuple[Change, ...]
    reasons: tuple[Reason, ...]
    tradeoffs: tuple[str, ...]
    figures: dict[str, str] = Field(default_factory=dict)
    other: Layout | None = None
    """The layout that the draft is compared with: the best one, or for the best the second."""
    above: Layout | None = None
    """The layout ranked just above, from the third draft on."""
    muted: tuple[str, ...] = ()
    """Sentences that the critic struck out; they stay out."""

    @property
    def layout(self) -> Layout:
        """The candidate's layout."""
        return self.candidate.layout

    @property
    def texts(self) -> tuple[str, ...]:
        """Every sentence of the draft."""
        return (*(reason.text for reason in self.reasons), *self.tradeoffs)
