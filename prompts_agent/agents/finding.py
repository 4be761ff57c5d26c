"""Finding: a diagnosed cause of lost time, with the facts that show it and the seconds at stake."""

from __future__ import annotations

from pydantic import Field

from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.record import Record

__all__ = ["Finding"]


class Finding(Record):
    """One cause.

    `title` may hold `{fact:ID}` placeholders; code fills in the values, so that no sentence ever
    holds a number that is not a fact.
    """

    id: str = Field(pattern=r"^[a-z][a-z0-9_.\-]*$")
    kind: FindingKind
    title: str
    detail: str
    """What it means and what to do about it, with placeholders as in `title`."""
    seconds_per_step: float | None = None
    """Upper bound of what curing it saves; None where the trace gives no times."""
    share: float | None = None
    """`seconds_per_step` over the step's period."""
    is_sharding: bool
    """A different mesh could cure it."""
    axis: str | None = None
    fact_ids: tuple[str, ...]
