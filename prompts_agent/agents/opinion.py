"""Opinion: what the language model said that passed the gates, beside the deterministic answer.

Numbers in it were filled in by code. Without a model a report holds none.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prompts_agent.layout.layout import Layout
from prompts_agent.record import Record

__all__ = ["Attack", "Considered", "Judged", "Opinion", "Order", "Refused", "Said", "Spent"]


class Spent(Record):
    """What a run used of its budget for the model."""

    calls: int
    seconds: float
    seconds_limit: float
    input_tokens: int
    output_tokens: int
    tokens_limit: int
    tokens_estimated: bool = False
    """Of at least one call: the server did not count, so its characters were."""
    usd: float | None = None
    """None where no prices are given."""
    usd_limit: float | None = None
    stopped: str | None = None
    """Why the run went on without the model; None where it did not."""


class Said(Record):
    """A sentence of the model, and what it refers to."""

    text: str
    finding_ids: tuple[str, ...] = ()
    fact_ids: tuple[str, ...] = ()
    recipe_ids: tuple[str, ...] = ()


class Judged(Record):
    """A recipe that the model kept, or set aside, and why."""

    recipe_id: str
    kept: bool
    reason: str


class Order(Record):
    """The order that the model put the proposals in; `before[i]` is the rank, without the model, of
    what is now proposal i + 1.
    """

    before: tuple[int, ...]
    reason: str


class Considered(Record):
    """A layout that the model suggested: through the same gates, and never among the proposals."""

    layout: Layout | None = None
    """None where the suggestion is no layout at all."""
    suggested: str
    """What was asked for, as the model's integers."""
    step_time_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    hbm_bytes: int | None = None
    hbm_limit_bytes: int | None = None
    verdict: Literal[
        "no layout", "not legal", "does not fit", "proposed already", "ranks below", "ranks among"
    ]
    """`ranks among`: the same ranking puts it before the last proposal."""
    why: str
    """The gate's own words."""
    reason: str | None = None
    """The model's."""


class Attack(Record):
    """What the model holds against a proposal, by its rank in this report."""

    rank: int
    kind: Literal["assumption", "contradiction", "risk"]
    text: str
    falsified_by: str | None = None
    """What would show that the proposal is wrong."""
    sent_back: bool = False
    """The critic asked the planner to look again."""


class Refused(Record):
    """Something the model wrote that a gate turned away."""

    node: str
    reason: str
    """A few fixed words: number without a source, unknown id, contradicts the layout, …"""
    count: int = 1


class Opinion(Record):
    """Everything that a model added to one report."""

    model: str
    endpoint: str
    """Scheme, host and port of the server."""
    spent: Spent
    story: tuple[Said, ...] = ()
    """Causes in the order that the analyst put them, as a chain."""
    capture_next: tuple[Said, ...] = ()
    """What another capture should hold."""
    queries: tuple[str, ...] = ()
    """What the retriever asked besides."""
    evidence: tuple[Judged, ...] = ()
    order: Order | None = None
    cases: dict[int, tuple[Said, ...]] = Field(default_factory=dict)
    """Rank → what the planner says for the proposal."""
    considered: tuple[Considered, ...] = ()
    attacks: tuple[Attack, ...] = ()
    refused: tuple[Refused, ...] = ()
    failures: tuple[str, ...] = ()
    """Calls that gave no answer, each in a line."""
