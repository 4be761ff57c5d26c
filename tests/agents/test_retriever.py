"""What is asked of the knowledge base, and what is taken from its answer."""

from __future__ import annotations

from agents_build import exposed, profile, workload

from prompts_agent.agents.analyst.analyst import analyse
from prompts_agent.agents.retriever import Retrieved, moves_of, query, recall
from prompts_agent.knowledge.library import load_recipes
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import Breakdown, CollectiveKind
from prompts_agent.workload.workload import Phase


def test_the_question_holds_what_is_known_costliest_first() -> None:
    traced = profile(
        collectives=(
            exposed(CollectiveKind.ALL_GATHER, "fsdp", 0.1),
            exposed(CollectiveKind.ALL_REDUCE, "mdl", 0.2),
        ),
        breakdown=Breakdown(compute_s=0.4, host_transfer_s=0.3),
    )
    findings = analyse(traced, None)[1]
    asked = query(findings, workload(), traced, {"mdl": Axis.TENSOR})
    assert asked.findings == (FindingKind.HOST_TRANSFER, FindingKind.EXPOSED_COLLECTIVE)
    assert asked.axes == (Axis.TENSOR, Axis.FSDP)
    assert asked.text == "all-reduce all-gather"  # and not the trace's own names
    assert (asked.phase, asked.chip, asked.devices, asked.sequence) == (
        Phase.PRETRAIN, "v5e", 16, 2048,
    )  # fmt: skip


def test_without_a_workload_the_trace_alone_asks() -> None:
    asked = query((), None, profile(), {})
    assert (asked.phase, asked.chip, asked.devices) == (None, "v5e", 16)
    virtual = profile(structure_only=True, device_kind="cpu")
    assert query((), None, virtual, {}).chip is None
    assert query((), None, None, {}).findings == ()


def test_every_recipes_moves_are_of_axes_or_knobs() -> None:
    for recipe in load_recipes():
        assert {move for _, move in moves_of(recipe)} <= {"raise", "lower", "set_one"}


def test_evidence_says_first_what_the_recipe_does_here() -> None:
    traced = profile(collectives=(exposed(axis="tensor"),))
    findings = analyse(traced, None)[1]
    found = recall(findings, workload(), traced, {"tensor": Axis.TENSOR})
    assert found.evidence
    for item in found.evidence:
        assert "_" not in item.reasons[0]
        assert item.reasons[-1].startswith("rank ")
        if found.moves[item.recipe_id]:
            assert ": " in item.reasons[0]
    assert any(i.reasons[0].startswith("treats exposed collective: ") for i in found.evidence)


def test_a_job_that_is_planned_for_is_not_told_to_capture_a_better_trace() -> None:
    virtual = profile(structure_only=True, device_kind="cpu", mesh=(), collectives=())
    findings = analyse(virtual, workload())[1]
    assert [f.kind for f in findings] == [FindingKind.TRACE_TOO_POOR]
    planned = recall(findings, workload(), virtual, {})
    assert planned.evidence
    assert all(found.startswith("for this phase") for found in _first(planned))
    unknown = recall(findings, None, virtual, {})
    assert unknown.evidence[0].recipe_id == "trace-too-poor-capture-again"


def _first(found: Retrieved) -> list[str]:
    return [item.reasons[0] for item in found.evidence]
