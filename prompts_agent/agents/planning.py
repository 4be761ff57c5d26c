"""Planning: the parts of the graph's nodes that search, draft and review.

A diagnosis that needs no mesh never loads this file, nor the search and the estimator behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from prompts_agent.agents import narrate
from prompts_agent.agents.critic.critic import criticise
from prompts_agent.agents.critic.evidence import Ground
from prompts_agent.agents.critic.review import Review, with_check
from prompts_agent.agents.planner.board import (
    MAX_ROUNDS,
    Board,
    first_board,
    next_board,
    settle,
)
from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.planner.decision import (
    already_best,
    nothing_fits,
    nothing_passes,
    worth_proposing,
)
from prompts_agent.agents.planner.search import Found, search
from prompts_agent.agents.report import Proposal, Rejection
from prompts_agent.agents.state import State
from prompts_agent.errors import InternalError
from prompts_agent.trace.profile import Fact
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Workload

__all__ = [
    "compiler_caveats",
    "first_round",
    "is_settled",
    "next_round",
    "proposed",
    "rejected",
    "reviewed",
    "separate_pools",
]


def separate_pools(state: State, proposals: Sequence[Proposal]) -> str | None:
    """What separate pools would do beside the proposals; None in training."""
    from prompts_agent.agents.pools import pools_text

    return pools_text(state["job"].workload, proposals)


def first_round(state: State) -> State:
    """Searches, and drafts the best layouts; or says why there is none to propose."""
    workload = _workload(state)
    found = search(workload)
    candidates = worth_proposing(found, workload.objective)
    abstained = nothing_fits(found) or already_best(
        found, candidates, workload.objective, state["findings"]
    )
    if abstained is not None:
        return {"found": found, "abstained": abstained}
    case = _case(state, workload, found)
    return {
        "found": found,
        "case": case,
        "board": first_board(candidates, case, state["request"].top),
    }


def next_round(state: State) -> State:
    """Mends and replaces what the critic sent back."""
    board, case, found = state.get("board"), state.get("case"), state.get("found")
    if board is None or case is None or found is None:
        return {}
    candidates = worth_proposing(found, _workload(state).objective)
    return {"board": next_board(board, state["reviews"], candidates, case, found.roomier)}


def _case(state: State, workload: Workload, found: Found) -> Case:
    retrieved, ran = state["retrieved"], workload.baseline
    return Case(
        workload=workload,
        findings=state["findings"],
        moves=retrieved.moves,
        titles={item.recipe_id: item.title for item in retrieved.evidence},
        today=found.today,
        # A file's baseline for other devices still tells which degrees ran.
        traced=state["job"].traced or (ran.mesh.used() if ran is not None else {}),
        axes=state["job"].axes,
    )


def _workload(state: State) -> Workload:
    workload = state["job"].workload
    if workload is None:
        raise InternalError(
            "a search without a workload",
            rule="a job that is not known is answered before the search",
            cure="Report the command and its input.",
        )
    return workload


def reviewed(state: State) -> State:
    """Reviews every draft; on the last round what does not pass is dropped."""
    board, found = state.get("board"), state.get("found")
    if board is None or found is None:
        return {"reviews": ()}
    ground = Ground(
        facts=_facts(state),
        moves=state["retrieved"].moves,
        # Where nothing surely fits, what may fit is proposed with that warning.
        upper_bound_must_fit=found.surely_fits,
        workload=_workload(state),
    )
    reviews = criticise(board.drafts, search_space(_workload(state)), ground)
    reviews = _compiled(reviews, board, state)
    # Without drafts the ranking is exhausted: there is nothing left to send back.
    last = board.round >= MAX_ROUNDS or not board.drafts
    if last and not any(review.passed for review in reviews):
        return {"reviews": reviews, "abstained": nothing_passes(settle(board, reviews))}
    return {"reviews": reviews}


def _compiled(reviews: tuple[Review, ...], board: Board, state: State) -> tuple[Review, ...]:
    """What passed, compiled where that was asked for and the compiler is there."""
    if not _compiles(state):
        return reviews
    from prompts_agent.agents.critic.compiler import compiled, today_schedule_text, today_text

    estimated = [draft.candidate.predicted.hbm_bytes for draft in board.drafts]
    whole = state["request"].verify == "full"
    answered = compiled(reviews, _workload(state), estimated, whole=whole)
    profile = state["profile"]
    peak = profile.hbm_peak_bytes if profile is not None else None
    said = [today_text(_workload(state), peak)]
    said += [today_schedule_text(_workload(state), profile)] if whole else []
    for text in filter(None, said):
        answered = tuple(with_check(one, text) for one in answered)
    return answered


def _compiles(state: State) -> bool:
    mode = state["request"].verify
    if mode == "none":
        return False
    from prompts_agent.agents.critic.compiler import missing_compiler

    return mode in ("fit", "full") or missing_compiler(_workload(state)) is None


def compiler_caveats(state: State) -> tuple[str, ...]:
    """How to get the compiler where it was wanted and is not there; else how the program that was
    compiled may differ from the user's own.
    """
    if state["request"].verify == "none" or state["job"].workload is None:
        return ()
    from prompts_agent.agents.critic.compiler import missing_compiler

    missing = missing_compiler(_workload(state))
    if missing is not None:
        return (f"Proposals are estimated, not compiled. {missing}",)
    needs = [review.verdict.compiled for review in state["reviews"]]
    said = [text for need in needs if need is not None for text in need.differences]
    return tuple(dict.fromkeys(f"Compiled was a reference program: {text}" for text in said))


def is_settled(state: State) -> bool:
    """Every draft passed, or no round is left."""
    board = state.get("board")
    if board is None or board.round >= MAX_ROUNDS:
        return True
    return all(review.passed for review in state["reviews"])


def proposed(state: State) -> tuple[Proposal, ...]:
    """The drafts that passed, in words."""
    board = state.get("board")
    return () if board is None else narrate.proposals(board, state["reviews"], _facts(state))


def rejected(state: State) -> tuple[Rejection, ...]:
    """The layouts that were sent back, with their reasons."""
    board = state.get("board")
    return () if board is None else settle(board, state["reviews"])


def _facts(state: State) -> tuple[Fact, ...]:
    profile = state["profile"]
    return profile.facts if profile is not None else ()
