"""The critic: legality, memory, the draft's own words, and repeated meshes; every check is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prompts_agent.agents.critic.evidence import Ground, evidence_objections
from prompts_agent.agents.critic.review import Objection, Review
from prompts_agent.agents.critic.service import service_checks
from prompts_agent.agents.planner.draft import Draft
from prompts_agent.agents.report import Verdict
from prompts_agent.layout.diff import same_degrees
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.legality import check
from prompts_agent.layout.placement_text import placement_text
from prompts_agent.layout.space import Space
from prompts_agent.units import format_bytes

__all__ = ["WORDS_END", "criticise", "review"]

WORDS_END = "agree with the changes and cite what exists"
"""How the check of a draft's sentences ends."""


def criticise(drafts: Sequence[Draft], space: Space, ground: Ground) -> tuple[Review, ...]:
    """One review per draft, in order; a later draft of an earlier one's mesh is sent back."""
    seen: list[Layout] = []
    reviews = []
    for draft in drafts:
        reviews.append(review(draft, space, ground, earlier=seen))
        seen.append(draft.layout)
    return tuple(reviews)


def review(draft: Draft, space: Space, ground: Ground, *, earlier: Iterable[Layout] = ()) -> Review:
    """Every check of one draft. `earlier` are the layouts ranked above it."""
    legal, legality, broken = _legality(draft, space)
    fits, fit_text, too_large = _fit(draft, ground)
    repeated = _repeated(draft, earlier)
    words = evidence_objections(draft, ground)
    service = service_checks(draft.candidate, ground.workload)
    checks = (*legality, fit_text, *service, *(() if words else (_words_text(draft),)))
    return Review(
        layout=draft.layout,
        verdict=Verdict(
            legal=legal,
            fits=fits,
            contradictions=tuple(objection.reason for objection in words),
            checks=checks,
        ),
        objections=(*broken, *too_large, *repeated, *words),
    )


def _legality(draft: Draft, space: Space) -> tuple[bool, list[str], list[Objection]]:
    """Texts in the order of the rules; where each axis lies comes after the product of axes."""
    texts: list[str] = []
    broken: list[Objection] = []
    for item in check(draft.layout, space):
        if not item.ok and item.forbids:
            broken.append(Objection(about="layout", reason=f"{item.text}. {item.cure}"))
        elif not item.ok:
            texts.append(f"{item.text} (allowed, but note: {item.cure})")
        elif not item.quiet:
            texts.append(item.text)
    where = "" if broken else placement_text(draft.layout, space.topology)
    if where:
        texts.insert(1, where)
    return not broken, list(dict.fromkeys(texts)), broken


def _fit(draft: Draft, ground: Ground) -> tuple[bool, str, list[Objection]]:
    """The upper end of the memory estimate must fit; what may not fit is never proposed."""
    need, limit = draft.candidate.hbm_high_bytes, draft.candidate.predicted.hbm_limit_bytes
    fits = need <= limit
    text = (
        f"memory at most {format_bytes(need)} {'≤' if fits else '>'} {format_bytes(limit)} usable"
    )
    if fits:
        return True, text, []
    if not ground.upper_bound_must_fit and draft.candidate.predicted.hbm_bytes <= limit:
        return False, f"{text}: may not fit", []
    return False, text, [Objection(about="memory", reason=text, overshoot=need / limit - 1.0)]


def _repeated(draft: Draft, earlier: Iterable[Layout]) -> list[Objection]:
    if any(same_degrees(draft.layout, other) for other in earlier):
        reason = f"the mesh {draft.layout} is proposed already"
        return [Objection(about="layout", reason=reason)]
    return []


def _words_text(draft: Draft) -> str:
    return f"{len(draft.texts)} sentences {WORDS_END}"
