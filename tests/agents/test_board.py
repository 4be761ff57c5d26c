"""The loop of planner and critic: rounds, replacements, feedback."""

from __future__ import annotations

from collections.abc import Sequence

from agents_build import GB, candidate, layout

from prompts_agent.agents.critic.review import Objection, Review
from prompts_agent.agents.planner.board import (
    MAX_ROUNDS,
    Board,
    draft,
    first_board,
    next_board,
    settle,
)
from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.report import Verdict
from prompts_agent.layout.layout import Layout

# Ten meshes of 64 devices: tensor 1, 2, 4, … and the same with context.
SHAPES = [layout(fsdp=64 // t, tensor=t) for t in (1, 2, 4, 8, 16)]
SHAPES += [layout(fsdp=32 // t, context=2, tensor=t) for t in (1, 2, 4, 8, 16)]
CASE = Case()


def candidates(**of: int) -> list[Candidate]:
    return [candidate(shape, time__matmul_s=1.0, **of) for shape in SHAPES]


def judged(board: Board, bad: Sequence[Layout], about: str = "layout") -> tuple[Review, ...]:
    return tuple(
        Review(
            layout=item.layout,
            verdict=Verdict(legal=True, fits=True),
            objections=(
                (Objection.model_validate({"about": about, "reason": "scripted"}),)
                if item.layout in bad
                else ()
            ),
        )
        for item in board.drafts
    )


def play(bad: Sequence[Layout]) -> tuple[Board, tuple[Review, ...]]:
    """The loop that the graph runs, with a critic that refuses `bad`."""
    pool = candidates()
    board = first_board(pool, CASE, 3)
    reviews = judged(board, bad)
    while board.round < MAX_ROUNDS and not all(r.passed for r in reviews):
        board = next_board(board, reviews, pool, CASE)
        reviews = judged(board, bad)
    return board, reviews


def passed(board: Board, reviews: tuple[Review, ...]) -> list[Layout]:
    return [d.layout for d, r in zip(board.drafts, reviews, strict=True) if r.passed]


def test_one_round_where_all_pass() -> None:
    board, reviews = play([])
    assert board.round == 1
    assert passed(board, reviews) == SHAPES[:3]
    assert settle(board, reviews) == ()


def test_two_rounds_where_one_is_replaced_by_the_next() -> None:
    board, reviews = play([SHAPES[1]])
    assert board.round == 2
    assert passed(board, reviews) == [SHAPES[0], SHAPES[2], SHAPES[3]]
    (rejection,) = settle(board, reviews)
    assert (rejection.layout, rejection.round, rejection.reasons) == (SHAPES[1], 1, ("scripted",))


def test_three_rounds_where_a_replacement_fails_too() -> None:
    board, reviews = play([SHAPES[0], SHAPES[3]])
    assert board.round == 3
    assert passed(board, reviews) == [SHAPES[1], SHAPES[2], SHAPES[4]]
    assert [(r.layout, r.round) for r in settle(board, reviews)] == [(SHAPES[0], 1), (SHAPES[3], 2)]


def test_after_three_rounds_what_fails_is_dropped() -> None:
    board, reviews = play(SHAPES)
    assert board.round == MAX_ROUNDS
    assert passed(board, reviews) == []
    assert len(settle(board, reviews)) == 9  # three a round


def test_a_memory_objection_asks_for_more_room_from_those_that_follow() -> None:
    pool = candidates()
    # 14 GB × 1.1 = 15.4 GB of 16 GB fits, but not with 5 % more (16.17 GB); 13 GB does (15.0 GB).
    pool[3] = candidate(SHAPES[3], hbm=14 * GB, limit=16 * GB)
    pool[4] = candidate(SHAPES[4], hbm=13 * GB, limit=16 * GB)
    board = first_board(pool, CASE, 3)
    after_memory = next_board(board, judged(board, [SHAPES[0]], "memory"), pool, CASE)
    assert [d.layout for d in after_memory.drafts] == [SHAPES[1], SHAPES[2], SHAPES[4]]
    after_rule = next_board(board, judged(board, [SHAPES[0]]), pool, CASE)
    assert [d.layout for d in after_rule.drafts] == [SHAPES[1], SHAPES[2], SHAPES[3]]


def test_a_mesh_on_the_board_is_not_drafted_again() -> None:
    pool = candidates()
    pool[3] = candidate(SHAPES[2].model_copy(update={"microbatch": 2}))
    board = first_board(pool, CASE, 3)
    board = next_board(board, judged(board, [SHAPES[0]]), pool, CASE)
    assert [d.layout for d in board.drafts] == [SHAPES[1], SHAPES[2], SHAPES[4]]


def test_an_empty_ranking_leaves_fewer_proposals() -> None:
    pool = candidates()[:3]
    board = first_board(pool, CASE, 3)
    board = next_board(board, judged(board, [SHAPES[0]]), pool, CASE)
    assert [d.layout for d in board.drafts] == [SHAPES[1], SHAPES[2]]


def test_a_sentence_at_fault_goes_and_its_layout_stays() -> None:
    pool = candidates()
    board = first_board(pool, CASE, 1)
    text = board.drafts[0].reasons[0].text
    review = Review(
        layout=SHAPES[0],
        verdict=Verdict(legal=True, fits=True),
        objections=(Objection(about="text", reason="scripted", text=text),),
    )
    mended = next_board(board, [review], pool, CASE)
    assert [d.layout for d in mended.drafts] == [SHAPES[0]]
    assert text not in mended.drafts[0].texts
    assert mended.rejected == ()


def test_drafts_are_equal_for_equal_input() -> None:
    assert draft(candidates()[0], CASE) == draft(candidates()[0], CASE)


def test_after_a_replacement_drafts_are_argued_against_their_new_neighbours() -> None:
    pool = candidates()
    board = first_board(pool, CASE, 3)
    assert [d.other for d in board.drafts] == [SHAPES[1], SHAPES[0], SHAPES[0]]
    assert [d.above for d in board.drafts] == [None, None, SHAPES[1]]
    board = next_board(board, judged(board, [SHAPES[0]]), pool, CASE)
    assert [d.layout for d in board.drafts] == [SHAPES[1], SHAPES[2], SHAPES[3]]
    assert [d.other for d in board.drafts] == [SHAPES[2], SHAPES[1], SHAPES[1]]


def test_a_sentence_that_was_struck_out_stays_out() -> None:
    pool = candidates()
    board = first_board(pool, CASE, 1)
    text = board.drafts[0].reasons[0].text
    review = Review(
        layout=SHAPES[0],
        verdict=Verdict(legal=True, fits=True),
        objections=(Objection(about="text", reason="scripted", text=text),),
    )
    for _ in range(2):
        board = next_board(board, [review], pool, CASE)
        assert text not in board.drafts[0].texts
        review = review.model_copy(update={"objections": ()})
