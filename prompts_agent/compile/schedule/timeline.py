"""Timeline: when each op of a body runs, and which transfers nothing hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from prompts_agent.trace.hlo.collectives import Collective
from prompts_agent.trace.hlo.program import Instruction

__all__ = ["Span", "Timeline", "Transfer", "Way"]


class Way(StrEnum):
    """What carries a transfer."""

    LINKS = "links"
    HOST = "host"
    MEMORY = "memory"
    """Between HBM and on-chip memory, or within HBM."""


@dataclass(frozen=True, slots=True)
class Span:
    """An op on the device's clock; seconds from the start of its body.

    A loop or a call has a `body` that runs `trips` times one after another.
    """

    instruction: Instruction
    start_s: float
    duration_s: float
    body: Timeline | None = None
    trips: int = 1


@dataclass(slots=True)
class Transfer:
    """Something that moves beside the ops. `exposed_s` is what the device waits for it.

    `issued_s` is when its start was run, `start_s` when it has the links to itself.
    """

    instruction: Instruction
    way: Way
    issued_s: float
    start_s: float
    end_s: float
    collective: Collective | None = None
    bytes: int = 0
    exposed_s: float = 0.0
    waited_until_s: float | None = None
    """When its done was through; None while nothing has waited for it."""
    awaited_by: str | None = None
    """The name of that done."""

    @property
    def synchronous(self) -> bool:
        """The device does nothing else while it lasts."""
        return self.collective is not None and self.collective.role is None


@dataclass(slots=True)
class Timeline:
    """One run of one computation."""

    computation: str
    spans: list[Span] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    duration_s: float = 0.0

    def walk(self, times: int = 1) -> Iterator[tuple[Timeline, int]]:
        """Itself and the timelines of the bodies in it, each with how often it runs."""
        yield self, times
        for span in self.spans:
            if span.body is not None:
                yield from span.body.walk(times * span.trips)
