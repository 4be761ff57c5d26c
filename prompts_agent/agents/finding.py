"""Finding: a diagnosed cause of lost time, with the facts that show it and the seconds at stake."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.record import Record

__all__ = ["Finding", "axes_meant"]


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


def axes_meant(finding: Finding, names: Mapping[str, Axis]) -> tuple[Axis, ...]:
    """The axes that a finding is about, in our names; none where one of them is unknown.

    `names` are the trace's. A collective may span several: `data+fsdp`.
    """
    if finding.axis is None:
        return ()
    known = {**{axis.value: axis for axis in Axis}, **names}
    parts = finding.axis.split("+")
    if any(name not in known for name in parts):
        return ()
    return tuple(dict.fromkeys(known[name] for name in parts))
