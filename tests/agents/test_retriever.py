"""What is asked of the knowledge base, and what is taken from its answer."""

from __future__ import annotations

from agents_build import exposed, profile, workload

from prompts_agent.agents.analyst.analyst import analyse
from prompts_agent.agents.retriever import moves_of, query
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
