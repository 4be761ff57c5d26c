"""Exposed collectives: communication that no compute hides, by kind and mesh axis."""

from __future__ import annotations

from prompts_agent.agents.analyst.cite import finding, period_s, sentence
from prompts_agent.agents.finding import Finding
from prompts_agent.agents.placeholders import scrub
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.measure.facts import slug
from prompts_agent.trace.profile import CollectiveUse, Profile
from prompts_agent.workload.workload import Workload

__all__ = ["EXPOSED_SHARE", "detect"]

EXPOSED_SHARE = 0.02
"""Of the step. Medians of healthy jobs move by one or two percent from run to run, so a smaller
gain could not be told from noise."""


def detect(profile: Profile, workload: Workload | None) -> list[Finding]:  # noqa: ARG001
    """One finding per kind and axis whose exposed time is worth curing."""
    period = period_s(profile)
    if period is None:
        return []
    uses = [use for use in profile.collectives if use.exposed_s is not None]
    return [
        _finding(profile, use)
        for use in uses
        if use.exposed_s is not None and use.exposed_s > EXPOSED_SHARE * period
    ]


def _finding(profile: Profile, use: CollectiveUse) -> Finding:
    axis = use.axis or "unknown"
    stem = f"collective.{use.kind.value}.{slug(axis)}"
    where = f"over {scrub(use.axis)}" if use.axis else "over an axis that the trace does not name"
    title = sentence(
        profile,
        f"{use.kind.value} {where} is exposed for {{fact:{stem}.exposed}} of each step",
        f"{use.kind.value} {where} is exposed",
    )
    detail = sentence(
        profile,
        f"Of {{fact:{stem}.total}} in this collective, {{fact:{stem}.exposed}} is hidden under no "
        "compute. A smaller axis, fewer bytes per device or more compute per step would shrink it.",
        "This time is hidden under no compute. A smaller axis, fewer bytes per device or more "
        "compute per step would shrink it.",
    )
    fact_ids = tuple(f"{stem}.{what}" for what in ("exposed", "total", "bytes", "count"))
    return finding(
        profile,
        FindingKind.EXPOSED_COLLECTIVE,
        title=title,
        detail=detail,
        is_sharding=True,
        fact_ids=(*fact_ids, "breakdown.exposed_collective", "step_time"),
        seconds=use.exposed_s,
        axis=use.axis,
        suffix=f"{use.kind.value}.{slug(axis)}",
    )
