"""Review: what the critic sends back, and about what, so that the planner knows what to mend."""

from __future__ import annotations

from typing import Literal

from prompts_agent.agents.report import Verdict
from prompts_agent.layout.layout import Layout
from prompts_agent.record import Record

__all__ = ["Objection", "Review", "with_check"]


class Objection(Record):
    """One reason to send a draft back.

    `layout`: another candidate is needed. `memory`: another one, and every further one needs more
    room. `text`: the layout stands, its sentences do not.
    """

    about: Literal["layout", "memory", "text"]
    reason: str
    text: str | None = None
    """The sentence at fault, for `text`."""
    overshoot: float = 0.0
    """For `memory`: by which share of the limit the estimate is above it."""


class Review(Record):
    """The verdict on one draft; without objections it becomes a proposal."""

    layout: Layout
    verdict: Verdict
    objections: tuple[Objection, ...] = ()

    @property
    def passed(self) -> bool:
        """Nothing to object to."""
        return not self.objections

    @property
    def needs_other_layout(self) -> bool:
        """Something is wrong that no sentence can mend."""
        return any(objection.about != "text" for objection in self.objections)


def with_check(review: Review, text: str) -> Review:
    """One more check on a draft that was compiled; the others are left as they are."""
    if review.verdict.compiled is None:
        return review
    checks = (*review.verdict.checks, text)
    return review.model_copy(
        update={"verdict": review.verdict.model_copy(update={"checks": checks})}
    )
