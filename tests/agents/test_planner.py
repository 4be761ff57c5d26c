"""Whether to plan, and what a draft says of its layout."""

from __future__ import annotations

from typing import Any

import pytest
from agents_build import GB, candidate, exposed, layout, profile, workload

from prompts_agent.agents.analyst.analyst import analyse
from prompts_agent.agents.critic.critic import criticise
from prompts_agent.agents.critic.evidence import Ground
from prompts_agent.agents.finding import Finding
from prompts_agent.agents.planner.board import draft, first_board
from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.planner.decision import (
    already_best,
    cannot_tell,
    dominating,
    not_sharding,
    nothing_fits,
    worth_proposing,
)
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.planner.search import Found, search
from prompts_agent.agents.report import Search
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Measured, Objective

TODAY = Layout(mesh=Mesh.of(fsdp=2, tensor=8), microbatch=1, gradient_accumulation=16)


def finding(seconds: float | None, *, sharding: bool, of_step_s: float = 1.0) -> Finding:
    kind = FindingKind.EXPOSED_COLLECTIVE if sharding else FindingKind.HOST_TRANSFER
    return Finding(
        id=f"{kind.value}.{'none' if seconds is None else int(seconds * 1000)}",
        kind=kind,
        title="It waits",
        detail="Do less.",
        seconds_per_step=seconds,
        share=None if seconds is None else seconds / of_step_s,
        is_sharding=sharding,
        fact_ids=(),
    )


@pytest.mark.parametrize(
    ("seconds", "others", "abstains"),
    [
        (0.5, (), True),
        (0.21, (), True),
        (0.2, (), False),  # a fifth of the step, not more
        (0.5, (0.49,), True),
        (0.5, (0.5,), False),  # half of what is lost, not more
        (0.3, (0.2, 0.2), False),
    ],
)
def test_a_loss_that_no_mesh_cures_is_the_answer_where_it_dominates(
    seconds: float, others: tuple[float, ...], abstains: bool
) -> None:
    findings = [finding(seconds, sharding=False)]
    findings += [finding(s, sharding=True) for s in others]
    first = dominating(findings)
    assert (first is not None) is abstains
    if first is not None:
        answer = not_sharding(first, ("Offload less.",))
        assert answer.next_steps == ("Do less.", "Offload less.")


def test_a_sharding_loss_is_planned_for() -> None:
    assert dominating([finding(0.9, sharding=True)]) is None
    assert dominating([finding(None, sharding=False)]) is None
    assert dominating([]) is None


def test_what_is_missing_is_said() -> None:
    assert cannot_tell(()) is None
    answer = cannot_tell(("Name the model: --model X.",))
    assert answer is not None
    assert answer.next_steps == ("Name the model: --model X.",)
    poor = cannot_tell(("Name the model: --model X.",), poor=True)
    assert poor is not None
    assert poor.next_steps[1].startswith("Or capture again")


def found(*of: Candidate, today: Candidate | None = None, legal: int = 9, **more: Any) -> Found:
    values: dict[str, Any] = {
        "candidates": of,
        "today": today,
        "today_measured": True,
        "surely_fits": True,
        "count": Search(legal=legal, fit=len(of), considered=legal),
        "others": {},
    }
    return Found(**(values | more))


def faster(shape: Layout, times: float, **more: Any) -> Candidate:
    made = candidate(shape, **more)
    predicted = made.predicted.model_copy(
        update={"speedup": times, "speedup_low": 0.9 * times, "speedup_high": 1.1 * times}
    )
    return made.model_copy(update={"predicted": predicted})


@pytest.mark.parametrize(("times", "abstains"), [(1.0, True), (1.02, True), (1.03, False)])
def test_todays_layout_is_best_where_nothing_beats_it_by_more_than_noise(
    times: float, abstains: bool
) -> None:
    result = found(faster(layout(fsdp=16), times), today=candidate(TODAY))
    assert (already_best(result, result.candidates, Objective.THROUGHPUT) is not None) is abstains


def test_the_nearest_other_mesh_is_named_with_its_interval() -> None:
    # 0.97 × (0.9 to 1.1) is 0.87 to 1.07.
    result = found(faster(TODAY, 1.0), faster(layout(fsdp=16), 0.97), today=candidate(TODAY))
    answer = already_best(result, result.candidates, Objective.THROUGHPUT)
    assert answer is not None
    assert "The nearest, fsdp 16, is predicted at 0.97× today's, 0.87× to 1.07×." in answer.text
    assert "prompts diagnose TRACE" in answer.next_steps[0]
    other = (finding(0.1, sharding=False), finding(0.2, sharding=True))
    answer = already_best(result, result.candidates, Objective.THROUGHPUT, other)
    assert answer is not None
    assert answer.next_steps == ("Look at what no mesh cures: It waits.",)


def test_todays_layout_is_best_where_nothing_else_is_left() -> None:
    result = found(faster(TODAY, 1.0), today=candidate(TODAY, hbm=15 * GB), today_measured=False)
    assert already_best(result, (), Objective.THROUGHPUT) is not None


def test_fit_compares_memory_not_speed() -> None:
    roomier = faster(layout(fsdp=16), 0.5, hbm=5 * GB)
    result = found(roomier, today=candidate(TODAY, hbm=10 * GB))
    assert already_best(result, result.candidates, Objective.FIT) is None
    assert worth_proposing(result, Objective.FIT) == (roomier,)


def test_a_layout_that_may_not_fit_today_is_worth_leaving() -> None:
    slower = faster(layout(fsdp=16), 0.5)
    tight = candidate(TODAY, hbm=15 * GB)
    result = found(slower, today=tight, today_measured=False)
    assert already_best(result, result.candidates, Objective.THROUGHPUT) is None
    assert worth_proposing(result, Objective.THROUGHPUT) == (slower,)


def test_proposals_differ_from_today_and_may_be_faster() -> None:
    good, even, slow = (faster(layout(fsdp=16), t) for t in (1.5, 0.95, 0.9))
    result = found(good, faster(TODAY, 1.0), even, slow, today=candidate(TODAY))
    assert worth_proposing(result, Objective.THROUGHPUT) == (good, even)  # 0.9 × 1.1 < 1


def test_nothing_legal_and_nothing_that_fits_are_told_apart() -> None:
    illegal, large = nothing_fits(found(legal=0)), nothing_fits(found(legal=7))
    assert illegal is not None
    assert "legal for this model" in illegal.text
    assert large is not None
    assert "memory" in large.text
    assert nothing_fits(found(candidate(TODAY))) is None


def test_a_draft_answers_the_finding_on_the_axis_that_it_lowers() -> None:
    traced, findings = analyse(profile(collectives=(exposed(axis="mdl"),)), None)
    case = Case(
        findings=findings,
        today=candidate(TODAY, time__tensor_exposed_s=0.5),
        axes={"mdl": Axis.TENSOR},
        titles={"against": "More", "half": "Half", "for": "Cut 8 heads less"},
        moves={
            "against": (("tensor", "raise"),),
            "half": (("tensor", "lower"), ("data", "lower")),
            "for": (("tensor", "lower"), ("fsdp", "raise"), ("context", "raise")),
        },
    )
    best = draft(candidate(layout(fsdp=16), time__tensor_exposed_s=0.1), case)
    texts = [reason.text for reason in best.reasons]
    assert texts[0].startswith("Lowers the tensor axis ({change:tensor}).")
    assert "collective.all-reduce.mdl.exposed" in best.reasons[0].fact_ids
    assert best.figures["change:tensor"] == "8 → 1"
    assert best.reasons[1].term_ids == ("time.tensor_exposed_s",)
    assert best.figures["today:time.tensor_exposed_s"] == "500 ms"
    assert [r.recipe_ids for r in best.reasons if r.recipe_ids] == [("for",)]
    raised = draft(candidate(layout(tensor=16)), case)
    assert any("grows, and all-reduce" in text for text in raised.tradeoffs)
    assert not any(text.startswith("Lowers") for text in raised.texts)
    assert traced.fact(best.reasons[0].fact_ids[0]) is not None


def test_a_collective_over_two_axes_is_answered_by_either_but_not_by_a_swap() -> None:
    findings = analyse(profile(collectives=(exposed(axis="fsdp+tensor"),)), None)[1]
    case = Case(findings=findings, today=candidate(layout(fsdp=4, tensor=4)))

    def answers(shape: Layout) -> bool:
        made = draft(candidate(shape), case)
        return any(reason.text.startswith("Lowers") for reason in made.reasons)

    assert answers(layout(data=4, fsdp=1, tensor=4))
    assert not answers(layout(fsdp=8, tensor=2))
    unknown = findings[0].model_copy(update={"axis": "fsdp+axis0"})
    assert case.axes_of(unknown) == ()


@pytest.mark.parametrize("objective", list(Objective))
def test_every_draft_of_a_real_search_passes_its_critic(objective: Objective) -> None:
    job = workload(baseline=TODAY, objective=objective)
    traced, findings = analyse(profile(collectives=(exposed(axis="tensor"),)), job)
    result = search(job)
    moves = {"for": (("tensor", "lower"), ("fsdp", "raise")), "none": ()}
    case = Case(
        workload=job, findings=findings, moves=moves, titles={"for": "3 tensor ranks too many"},
        today=result.today, axes={"tensor": Axis.TENSOR},
    )  # fmt: skip
    board = first_board(worth_proposing(result, objective), case, 10)
    reviews = criticise(board.drafts, search_space(job), Ground(facts=traced.facts, moves=moves))
    assert len(board.drafts) == 10
    for item in reviews:
        # The ranking puts layouts that surely fit first; the rest may go back for memory alone.
        assert {objection.about for objection in item.objections} <= {"memory"}
    assert reviews[0].passed


def test_a_measured_step_scales_every_prediction() -> None:
    plain = search(workload(baseline=TODAY))
    step_s = 10.0
    measured = Measured(layout=TODAY, step_time_s=step_s, source="test")
    scaled = search(workload(baseline=TODAY, baseline_measured=measured))
    assert scaled.today is not None
    assert scaled.today.predicted.step_time_s == pytest.approx(step_s)
    assert scaled.today_measured
    assert not plain.today_measured
    first, second = plain.candidates[0].predicted, scaled.candidates[0].predicted
    assert first.speedup == pytest.approx(second.speedup)
    assert second.step_time_s == pytest.approx(step_s / (second.speedup or 0))
