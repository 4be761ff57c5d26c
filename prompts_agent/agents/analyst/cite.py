"""What every detector needs: the step's period, shares of it, and facts that are really there."""

from __future__ import annotations

from prompts_agent.agents.finding import Finding
from prompts_agent.agents.placeholders import placeholder_ids, scrub
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.profile import Profile

__all__ = ["cited", "finding", "period_s", "sentence"]


def period_s(profile: Profile) -> float | None:
    """Seconds from one step's start to the next; None where the times mean nothing."""
    if profile.structure_only or profile.step is None:
        return None
    return profile.step.period_s or profile.step.median_s or None


def cited(profile: Profile, *fact_ids: str) -> tuple[str, ...]:
    """Those of `fact_ids` that the profile holds, each once."""
    known = {fact.id for fact in profile.facts}
    return tuple(dict.fromkeys(fact_id for fact_id in fact_ids if fact_id in known))


def sentence(profile: Profile, *versions: str) -> str:
    """The first of `versions` whose every `{fact:ID}` exists; the last must need none.

    Detectors say a number where the profile has it as a fact, and the plain sentence where not.
    """
    known = {fact.id for fact in profile.facts}
    return next((v for v in versions if set(placeholder_ids(v)) <= known), versions[-1])


def finding(
    profile: Profile,
    kind: FindingKind,
    *,
    title: str,
    detail: str,
    is_sharding: bool,
    fact_ids: tuple[str, ...],
    seconds: float | None = None,
    axis: str | None = None,
    suffix: str = "",
) -> Finding:
    """A finding whose facts resolve: the given ones that exist, and those that its text names."""
    period = period_s(profile)
    named = placeholder_ids(title) + placeholder_ids(detail)
    known_seconds = seconds if period is not None else None
    return Finding(
        id=f"{kind.value}.{suffix}" if suffix else kind.value,
        kind=kind,
        title=title,
        detail=detail,
        seconds_per_step=known_seconds,
        # A cure cannot save more than the step; sums over overlapping ops may say so.
        share=None if known_seconds is None or not period else min(1.0, known_seconds / period),
        is_sharding=is_sharding,
        axis=None if axis is None else scrub(axis),
        fact_ids=cited(profile, *fact_ids, *named),
    )
