"""Board: the drafts on the table, round by round, and what became of those that were sent back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from prompts_agent.agents.critic.review import Review
from prompts_agent.agents.planner.case import Case, Standing, changes_from_today, standings
from prompts_agent.agents.planner.draft import Candidate, Draft
from prompts_agent.agents.planner.figures import figures
from prompts_agent.agents.planner.reasons import reasons
from prompts_agent.agents.planner.tradeoffs import tradeoffs
from prompts_agent.agents.report import Rejection
from prompts_agent.layout.diff import same_degrees
from prompts_agent.layout.layout import Layout
from prompts_agent.record import Record

__all__ = [
    "MARGIN_STEP",
    "MAX_ROUNDS",
    "Board",
    "draft",
    "first_board",
    "next_board",
    "reordered",
    "settle",
]

MAX_ROUNDS = 3
"""Drafts are reviewed so often; what still fails then is dropped."""
MARGIN_STEP = 0.05
"""Head room that each round with a memory objection adds: the order of the spread between what an
estimate and a compiler say of one layout."""


class Board(Record):
    """One round's drafts, in the order of the ranking."""

    round: int
    drafts: tuple[Draft, ...]
    taken: int
    """Candidates used up, from the front of the ranking."""
    margin: float = 0.0
    """Share of memory that further candidates must leave free beyond their upper estimate."""
    rejected: tuple[Rejection, ...] = ()


def draft(
    candidate: Candidate,
    case: Case,
    standing: Standing | None = None,
    muted: tuple[str, ...] = (),
) -> Draft:
    """The candidate argued for, without the sentences in `muted`."""
    standing = standing or Standing()
    changes = changes_from_today(case, candidate.layout)
    argued = reasons(candidate, changes, case, standing)
    return Draft(
        candidate=candidate,
        changes=changes,
        reasons=tuple(reason for reason in argued if reason.text not in muted),
        tradeoffs=tuple(t for t in tradeoffs(candidate, changes, case) if t not in muted),
        figures=figures(candidate, case, changes, standing),
        other=standing.other.layout if standing.other is not None else None,
        above=standing.above.layout if standing.above is not None else None,
        muted=muted,
    )


def _drafts(
    candidates: Sequence[Candidate],
    case: Case,
    muted: Sequence[tuple[str, ...]],
    ranks: Sequence[int] | None = None,
) -> tuple[Draft, ...]:
    """All of them, each argued against its neighbours."""
    placed = zip(candidates, standings(candidates, ranks), muted, strict=True)
    return tuple(draft(candidate, case, where, out) for candidate, where, out in placed)


def first_board(candidates: Sequence[Candidate], case: Case, top: int) -> Board:
    """The first `top` candidates, drafted."""
    chosen = candidates[:top]
    return Board(round=1, drafts=_drafts(chosen, case, [()] * len(chosen)), taken=len(chosen))


def reordered(
    board: Board,
    reviews: Sequence[Review],
    places: Sequence[int],
    case: Case,
    ranks: Sequence[int],
) -> Board:
    """The drafts that passed in another order: `places` are theirs in the board, `ranks` those
    that the ranking gave them in the order of the board, all from 0.
    """
    pairs = zip(board.drafts, reviews, strict=True)
    passed = [draft for draft, review in pairs if review.passed]
    drafts = [passed[place] for place in places]
    argued = _drafts(
        [item.candidate for item in drafts],
        case,
        [item.muted for item in drafts],
        [ranks[place] for place in places],
    )
    return board.model_copy(update={"drafts": argued, "rejected": settle(board, reviews)})


def settle(board: Board, reviews: Sequence[Review]) -> tuple[Rejection, ...]:
    """All rejections after these reviews: earlier ones, and the layouts that were sent back now."""
    now = [
        Rejection(
            layout=review.layout,
            round=board.round,
            reasons=tuple(objection.reason for objection in review.objections),
        )
        for review in reviews
        if review.needs_other_layout
    ]
    return (*board.rejected, *now)


def next_board(
    board: Board,
    reviews: Sequence[Review],
    candidates: Sequence[Candidate],
    case: Case,
    roomier: Mapping[Layout, Sequence[Candidate]] = MappingProxyType({}),
) -> Board:
    """The next round: drafts that passed stay, sentences at fault go, layouts are replaced.

    A layout that needs too much memory is tried again with knobs that need less (`roomier`), each
    once. Other replacements come from the ranking behind the last one used; a mesh that is on the
    board or was rejected, and one that leaves less memory free than the feedback asks, is passed
    over.
    """
    margin = board.margin
    if any(o.about == "memory" for review in reviews for o in review.objections):
        margin += MARGIN_STEP
    kept = [
        (old.candidate, _muted(old, review))
        for old, review in zip(board.drafts, reviews, strict=True)
        if not review.needs_other_layout
    ]
    rejected = settle(board, reviews)
    kept += [(other, ()) for other in _roomier(reviews, rejected, roomier)]
    wanted, taken = len(board.drafts), board.taken
    used = [item.layout for item, _ in kept] + [item.layout for item in rejected]
    while len(kept) < wanted and taken < len(candidates):
        candidate = candidates[taken]
        taken += 1
        limit = candidate.predicted.hbm_limit_bytes
        roomy = candidate.hbm_high_bytes * (1.0 + margin) <= limit
        if roomy and not any(same_degrees(candidate.layout, layout) for layout in used):
            kept.append((candidate, ()))
            used.append(candidate.layout)
    # Every draft is argued anew: its neighbours may be others now.
    drafts = _drafts([item for item, _ in kept], case, [muted for _, muted in kept])
    return Board(
        round=board.round + 1, drafts=drafts, taken=taken, margin=margin, rejected=rejected
    )


def _roomier(
    reviews: Sequence[Review],
    rejected: Sequence[Rejection],
    roomier: Mapping[Layout, Sequence[Candidate]],
) -> list[Candidate]:
    """For each layout sent back over memory, its mesh with the next knobs that were not tried."""
    tried = {item.layout for item in rejected}
    found = []
    for review in reviews:
        if any(objection.about == "memory" for objection in review.objections):
            others = [c for c in roomier.get(review.layout, ()) if c.layout not in tried]
            found += others[:1]
    return found


def _muted(old: Draft, review: Review) -> tuple[str, ...]:
    """Sentences that stay out: those struck out before, and those at fault now.

    The plain sentences take the place of whatever else was written.
    """
    at_fault = [o.text for o in review.objections if o.text is not None]
    return tuple(dict.fromkeys((*old.muted, *at_fault)))
