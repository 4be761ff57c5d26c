"""The critic's second rung. The compiler itself is stood in for: it is no part of every install."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from agents_build import GB, candidate, layout

from prompts_agent.agents import graph
from prompts_agent.agents.critic import compiler
from prompts_agent.agents.critic.review import Objection, Review
from prompts_agent.agents.planner.board import first_board, next_board
from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.report import Verdict
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.compile.outcome import CompiledFit, Outcome
from prompts_agent.compile.schedule.records import CompiledCollective, Schedule
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import CollectiveKind, CollectiveUse, Profile, StepTimes
from prompts_agent.workload.workload import Workload
from prompts_agent.workload.yaml import load_workload

LIMIT = 16 * GB
JOB = """
name: job
source: made for this test
model: llama3-8b
hardware: v5e:4x4
phase: pretrain
global_batch: 64
sequence: 4096
baseline: {mesh: {fsdp: 16}, remat: full, microbatch: 4}
"""


@pytest.fixture
def job(tmp_path: Path) -> Workload:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return load_workload(path)


def answer(need: int, **fields: Any) -> CompiledFit:
    fits = need <= LIMIT
    return CompiledFit(
        outcome=Outcome.FITS if fits else Outcome.DOES_NOT_FIT,
        compiles=fits,
        fits=fits,
        hbm_need_bytes=need,
        hbm_limit_bytes=LIMIT,
        reason="" if fits else "The compiler refuses it.",
        toolchain="libtpu 0.0.52",
        **fields,
    )


def stand_in(monkeypatch: pytest.MonkeyPatch, answers: dict[Layout, CompiledFit] | Any) -> None:
    def fit_many(jobs: Any, **_: Any) -> list[CompiledFit]:
        say = answers.get if isinstance(answers, dict) else answers
        return [say(layout) for layout, _ in jobs]

    monkeypatch.setattr(compiler, "fit_many", fit_many)
    monkeypatch.setattr(compiler, "find_toolchain", lambda _: object())


def passed(of: Layout) -> Review:
    return Review(layout=of, verdict=Verdict(legal=True, fits=True))


def sent_back(of: Layout, about: Literal["layout", "memory"]) -> Review:
    objection = Objection(about=about, reason="scripted")
    return passed(of).model_copy(update={"objections": (objection,)})


def test_what_compiles_climbs_a_rung(monkeypatch: pytest.MonkeyPatch, job: Workload) -> None:
    mesh = layout(fsdp=16)
    stand_in(monkeypatch, {mesh: answer(12 * GB)})
    (review,) = compiler.compiled([passed(mesh)], job, [10 * GB])
    assert review.passed
    assert review.verdict.rung == "compiled"
    assert review.verdict.compiled is not None
    assert review.verdict.compiled.hbm_need_bytes == 12 * GB
    # 10 ÷ 12 - 1 = -17 %
    assert review.verdict.checks[-1] == (
        "compiled by libtpu 0.0.52: needs 12.0 GB of 16.0 GB; the estimate was 10.0 GB (-17%)"
    )


def test_a_large_gap_is_said(monkeypatch: pytest.MonkeyPatch, job: Workload) -> None:
    mesh = layout(fsdp=16)
    stand_in(monkeypatch, {mesh: answer(15_800_000_000)})
    (review,) = compiler.compiled([passed(mesh)], job, [8 * GB])
    assert "so near the limit" in review.verdict.checks[-1]
    assert review.verdict.checks[-1].endswith("(-49%): a large gap, trust the compiler")


def test_what_the_compiler_refuses_is_sent_back(
    monkeypatch: pytest.MonkeyPatch, job: Workload
) -> None:
    mesh = layout(fsdp=16)
    refused = CompiledFit(outcome=Outcome.REFUSED, compiles=False, reason="No rule for that.")
    stand_in(monkeypatch, {mesh: answer(20 * GB)})
    (review,) = compiler.compiled([passed(mesh)], job, [10 * GB])
    (objection,) = review.objections
    assert objection.about == "memory"
    assert objection.overshoot == pytest.approx(0.25)  # 20 ÷ 16 - 1
    assert not review.verdict.fits
    stand_in(monkeypatch, {mesh: refused})
    (review,) = compiler.compiled([passed(mesh)], job, [10 * GB])
    assert [o.about for o in review.objections] == ["layout"]
    assert "No rule for that." in review.objections[0].reason


@pytest.mark.parametrize(
    "outcome", [Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.NOT_BUILT, Outcome.OUT_OF_HOST_MEMORY]
)
def test_no_answer_leaves_the_estimate_and_says_so(
    monkeypatch: pytest.MonkeyPatch, job: Workload, outcome: Outcome
) -> None:
    mesh = layout(fsdp=16)
    stand_in(monkeypatch, {mesh: CompiledFit(outcome=outcome, reason="Because.")})
    (review,) = compiler.compiled([passed(mesh)], job, [10 * GB])
    assert review.passed
    assert review.verdict.rung == "estimated"
    assert review.verdict.checks[-1] == f"not compiled ({outcome.value}): Because."


def test_what_was_sent_back_already_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch, job: Workload
) -> None:
    mesh = layout(fsdp=16)
    stand_in(monkeypatch, {})
    back = sent_back(mesh, "layout")
    assert compiler.compiled([back], job, [GB]) == (back,)


def test_a_mesh_that_needs_too_much_is_tried_again_with_other_knobs() -> None:
    best, other = layout(fsdp=16), layout(fsdp=8, tensor=2)
    roomy = best.model_copy(update={"remat": Remat.MINIMAL, "microbatch": 2})
    pool = [candidate(best, time__matmul_s=1.0), candidate(other, time__matmul_s=1.1)]
    again = candidate(roomy, time__matmul_s=1.2)
    board = first_board(pool, Case(), 1)
    back = sent_back(best, "memory")
    second = next_board(board, [back], pool, Case(), {best: (again,)})
    assert [draft.layout for draft in second.drafts] == [roomy]
    back = sent_back(roomy, "memory")
    third = next_board(second, [back], pool, Case(), {best: (again,), roomy: ()})
    assert [draft.layout for draft in third.drafts] == [other]


def test_the_graph_proposes_what_compiles(monkeypatch: pytest.MonkeyPatch, job: Workload) -> None:
    """A compiler that takes no tensor axis: every proposal is without one, and compiled."""

    def refuses_tensor(of: Layout) -> CompiledFit:
        return answer(20 * GB if of.mesh.size(Axis.TENSOR) > 1 else 9 * GB)

    stand_in(monkeypatch, refuses_tensor)
    report = graph.run_plan(DiagnoseRequest(workload=job, verify="fit"))
    assert report.proposals
    assert all(p.rung == "compiled" for p in report.proposals)
    assert all(p.layout.mesh.size(Axis.TENSOR) == 1 for p in report.proposals)


def test_without_a_compiler_the_report_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, job: Workload
) -> None:
    monkeypatch.setattr(compiler, "find_toolchain", lambda _: None)
    report = graph.run_plan(DiagnoseRequest(workload=job, verify="auto"))
    assert any("prompts-agent[tpu]" in caveat for caveat in report.caveats)
    assert {p.rung for p in report.proposals} == {"estimated"}
    silent = graph.run_plan(DiagnoseRequest(workload=job))
    assert not any("prompts-agent[tpu]" in caveat for caveat in silent.caveats)


def test_today_s_layout_checks_the_compiler(monkeypatch: pytest.MonkeyPatch, job: Workload) -> None:
    assert job.baseline is not None
    stand_in(monkeypatch, {job.baseline: answer(9 * GB)})
    assert compiler.today_text(job, 10 * GB) == (
        "for today's layout the same compile needs 9.00 GB, and its run took 10.0 GB (-10%)"
    )
    assert compiler.today_text(job, None) is None


def test_today_s_schedule_beside_the_trace(monkeypatch: pytest.MonkeyPatch, job: Workload) -> None:
    def use(kind: str, exposed_s: float) -> CompiledCollective:
        return CompiledCollective(
            kind=kind, axis="fsdp", group_size=16, count=1, bytes=1, total_s=1.0,
            exposed_s=exposed_s,
        )  # fmt: skip

    schedule = Schedule(
        clock="", step_time_s=1.8, by_cycles_s=1.8, by_roofline_s=1.5, compute_s=1.5,
        exposed_collectives_s=0.3, exposed_host_s=0.0, exposed_memory_s=0.0, matmul_flops=1.0,
        collectives=(use("all-gather", 0.1), use("all-reduce", 0.2)), loops=(), generated=True,
    )  # fmt: skip
    assert job.baseline is not None
    stand_in(monkeypatch, {job.baseline: answer(9 * GB, schedule=schedule)})
    seen = Profile.model_construct(
        structure_only=False,
        step=StepTimes(
            median_s=2.0, min_s=2.0, max_s=2.0, count=3, program="jit_step", derived_from=""
        ),
        collectives=(
            CollectiveUse(
                kind=CollectiveKind.ALL_GATHER,
                axis="fsdp",
                group_size=16,
                count=1.0,
                bytes=1,
                total_s=0.3,
                exposed_s=0.25,
            ),
        ),
    )
    assert compiler.today_schedule_text(job, seen) == (
        "for today's layout the compiled step takes 1.80 s, and its run took 2.00 s (-10%); "
        "exposed collectives, compiled to measured: fsdp 300 ms to 250 ms"
    )
    assert compiler.today_schedule_text(job, None) is None
