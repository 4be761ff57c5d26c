"""The whole graph, from a profile or flags to a report, with and without its knowledge base."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import Any

import pytest
from agents_build import GB, exposed, op, parameter, profile, workload
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.agents import nodes, planning
from prompts_agent.agents.critic.critic import criticise
from prompts_agent.agents.critic.review import Objection, Review
from prompts_agent.agents.graph import NODES, run_diagnosis, run_plan, run_profile
from prompts_agent.agents.placeholders import placeholder_ids
from prompts_agent.agents.planner import decision
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.agents.retriever import Cure, Retrieved
from prompts_agent.errors import InputError
from prompts_agent.knowledge.evidence import Evidence
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import Breakdown, CollectiveKind, MeshAxisUse, Profile
from prompts_agent.workload.workload import Objective, Phase

FLAGS = DiagnoseRequest(model="llama3.1-8b", target="v5e:4x4", global_batch=32, sequence=2048)
RECALLED = Retrieved(
    evidence=(
        Evidence(recipe_id="less-tensor", title="Less", score=1.0, source="https://a.example"),
    ),
    moves={"less-tensor": (("tensor", "lower"),)},
    cures=(
        Cure(text="Offload less: keep it in HBM.", treats=(FindingKind.HOST_TRANSFER,)),
        Cure(text="Pad to fixed shapes.", treats=(FindingKind.RECOMPILING,)),
    ),
)


@pytest.fixture(autouse=True)
def _without_an_index(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "with_index" not in request.fixturenames:
        monkeypatch.setattr(nodes.retriever, "recall", lambda *_: RECALLED)


@pytest.fixture
def with_index() -> None:
    """This test asks the real knowledge base."""


def tensor_heavy(**changes: Any) -> Profile:
    """fsdp 2 × tensor 8 on 16 chips, with a third of the step exposed on tensor."""
    values: dict[str, Any] = {
        "mesh": (MeshAxisUse(name="fsdp", size=2), MeshAxisUse(name="tensor", size=8)),
        "collectives": (exposed(exposed_s=0.33),),
        "breakdown": Breakdown(compute_s=0.65, exposed_collective_s=0.33, idle_s=0.02),
    }
    return profile(**(values | changes))


def resolved(report: Report) -> None:
    """Every id of the report resolves, and no placeholder is left."""
    facts = {fact.id for fact in report.profile.facts} if report.profile else set()
    recipes = {evidence.recipe_id for evidence in report.evidence}
    for finding in report.findings:
        assert set(finding.fact_ids) <= facts
        assert placeholder_ids(finding.title + finding.detail) == ()
    for proposal in report.proposals:
        assert proposal.verdict.legal
        assert proposal.verdict.contradictions == ()
        for reason in proposal.reasons:
            assert set(reason.fact_ids) <= facts
            assert set(reason.recipe_ids) <= recipes
            assert set(reason.term_ids) <= set(proposal.terms)
            assert reason.fact_ids or reason.recipe_ids or reason.term_ids
            assert "{" not in reason.text
        assert not any("{" in text for text in proposal.tradeoffs)
    assert [p.rank for p in report.proposals] == list(range(1, len(report.proposals) + 1))
    meshes = [str(p.layout.mesh) for p in report.proposals]
    assert len(set(meshes)) == len(meshes)


def test_a_profile_becomes_three_proposals_calibrated_on_its_step() -> None:
    seen: list[str] = []
    report = run_profile(tensor_heavy(), DiagnoseRequest(workload=workload()), progress=seen.append)
    resolved(report)
    assert seen[:4] == ["read", "analyst", "retriever", "planner"]
    assert seen[-1] == "report"
    assert set(seen) == set(NODES)
    assert len(report.proposals) == 3
    assert report.abstained is None
    first = report.proposals[0]
    assert report.baseline is not None
    assert first.layout != report.baseline.layout
    assert first.predicted.speedup is not None
    assert first.predicted.speedup > 1
    lowering = [p for p in report.proposals if p.layout.mesh.size(Axis.TENSOR) < 8]
    assert lowering
    for proposal in lowering:
        assert proposal.reasons[0].text.startswith("Lowers the tensor axis (8 → ")
        assert any(r.recipe_ids == ("less-tensor",) for r in proposal.reasons)
    assert report.baseline.measured_step_time_s == 1.0
    # The measured step over the predicted one is the speed-up: that is what calibration means.
    assert first.predicted.step_time_s == pytest.approx(1.0 / first.predicted.speedup)
    assert report.search is not None
    assert report.search.wall_s is None
    assert report.search.legal >= report.search.fit > 0
    assert report.other_objective is not None


def test_the_report_json_has_the_published_names() -> None:
    report = run_profile(tensor_heavy(), DiagnoseRequest(workload=workload()))
    data = json.loads(report.model_dump_json())
    assert {"schema_version", "trace", "profile", "findings", "evidence", "proposals",
            "abstained", "search", "rejected", "caveats"} <= data.keys()  # fmt: skip
    assert {"device_kind", "devices_in_trace", "devices_in_job", "step_time_s", "steps",
            "breakdown", "mesh", "collectives", "facts",
            "missing"} <= data["profile"].keys()  # fmt: skip
    assert (data["profile"]["step_time_s"], data["profile"]["steps"]) == (1.0, 10)
    assert {"compute_s", "idle_s"} <= data["profile"]["breakdown"].keys()
    assert {"kind", "axis", "bytes", "count", "total_s", "exposed_s"} <= data["profile"][
        "collectives"
    ][0].keys()
    assert {"id", "kind", "title", "seconds_per_step", "share", "is_sharding", "fact_ids"} <= data[
        "findings"
    ][0].keys()
    proposal = data["proposals"][0]
    assert {"rank", "layout", "changes", "predicted", "rung", "reasons", "tradeoffs"} <= (
        proposal.keys()
    )
    assert proposal["layout"]["mesh"]["fsdp"].keys() == {"ici", "dcn"}
    assert {"step_time_s", "low_s", "high_s", "hbm_bytes", "speedup"} <= (
        proposal["predicted"].keys()
    )
    assert {"legal", "fit", "wall_s"} <= data["search"].keys()
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_equal_input_gives_equal_bytes() -> None:
    request = DiagnoseRequest(workload=workload())
    first, second = (run_profile(tensor_heavy(), request).model_dump_json() for _ in range(2))
    assert first == second
    assert run_plan(FLAGS).model_dump_json() == run_plan(FLAGS).model_dump_json()


def test_timings_are_there_only_where_asked_for() -> None:
    report = run_plan(FLAGS.model_copy(update={"timings": True}))
    assert report.search is not None
    assert report.search.wall_s is not None
    assert report.search.wall_s > 0


@pytest.mark.parametrize("objective", list(Objective))
def test_a_plan_needs_no_trace(objective: Objective) -> None:
    report = run_plan(FLAGS.model_copy(update={"objective": objective}))
    resolved(report)
    assert report.trace is None
    assert report.profile is None
    assert report.findings == ()
    assert len(report.proposals) == 3
    assert all(p.predicted.speedup is None for p in report.proposals)
    assert any("no measured step" in text for text in report.caveats)


def test_top_is_how_many_are_proposed() -> None:
    assert len(run_plan(FLAGS.model_copy(update={"top": 5})).proposals) == 5


def test_offloading_that_dominates_is_answered_without_a_mesh() -> None:
    waiting = profile(breakdown=Breakdown(compute_s=0.3, host_transfer_s=0.6, idle_s=0.1))
    report = run_profile(waiting, DiagnoseRequest(workload=workload()))
    resolved(report)
    assert report.proposals == ()
    assert report.search is None
    assert report.abstained is not None
    assert report.abstained.kind == "not_sharding"
    assert "600 ms" in report.abstained.text
    assert "Offload less: keep it in HBM." in report.abstained.next_steps
    assert "Pad to fixed shapes." not in report.abstained.next_steps


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({}, ("--model", "--batch", "--sequence", "--phase")),
        ({"structure_only": True, "device_kind": "cpu"}, ("--model", "--target", "--batch")),
        ({"device_kind": None}, ("--model", "--target")),
    ],
)
def test_an_unknown_job_is_asked_about(changes: dict[str, Any], flags: tuple[str, ...]) -> None:
    report = run_profile(tensor_heavy(**changes), DiagnoseRequest())
    assert report.proposals == ()
    assert report.workload is None
    assert report.abstained is not None
    assert report.abstained.kind == "cannot_tell"
    steps = " ".join(report.abstained.next_steps)
    assert all(flag in steps for flag in flags)


def test_a_structure_only_trace_with_a_target_is_planned_for_uncalibrated() -> None:
    traced = tensor_heavy(structure_only=True, device_kind="cpu")
    report = run_profile(traced, DiagnoseRequest(workload=workload(), target="v5e:4x4"))
    resolved(report)
    assert report.proposals
    assert any("does not calibrate" in text for text in report.caveats)
    assert report.baseline is not None
    assert report.baseline.measured_step_time_s is None


def test_todays_best_layout_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "WORTH_A_TRIAL", math.inf)
    best = run_plan(FLAGS.model_copy(update={"top": 1})).proposals[0].layout
    report = run_plan(DiagnoseRequest(workload=workload(baseline=best)))
    assert report.proposals == ()
    assert report.abstained is not None
    assert report.abstained.kind == "already_best"
    assert report.search is not None


def test_layouts_that_the_estimate_cannot_tell_from_todays_are_for_trial() -> None:
    best = run_plan(FLAGS.model_copy(update={"top": 1})).proposals[0].layout
    report = run_plan(DiagnoseRequest(workload=workload(baseline=best)))
    assert report.abstained is None
    for proposal in report.proposals:
        assert proposal.layout != best
        assert proposal.predicted.speedup_low is not None
        assert proposal.predicted.speedup_low < 1.0
        assert any("may be no faster" in text for text in proposal.tradeoffs)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_critic_sends_back_and_the_next_candidate_steps_in(
    monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """The real critic, but for `rounds` - 1 rounds the best draft is refused whatever it is."""
    refused: list[Layout] = []

    def strict(drafts: Any, space: Any, ground: Any) -> tuple[Review, ...]:
        reviews = list(criticise(drafts, space, ground))
        if len(refused) < rounds - 1:
            refused.append(reviews[0].layout)
            objection = Objection(about="layout", reason="scripted")
            reviews[0] = reviews[0].model_copy(update={"objections": (objection,)})
        return tuple(reviews)

    seen: list[str] = []
    plain = run_plan(FLAGS.model_copy(update={"top": 5})).proposals
    monkeypatch.setattr(planning, "criticise", strict)
    report = run_plan(FLAGS, progress=seen.append)
    resolved(report)
    assert seen.count("critic") == seen.count("planner") == rounds
    assert [r.layout for r in report.rejected] == refused
    assert [r.round for r in report.rejected] == list(range(1, rounds))
    assert [p.layout for p in report.proposals] == [p.layout for p in plain[rounds - 1 :]][:3]


def test_a_critic_that_lets_nothing_through_ends_after_three_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(drafts: Any, space: Any, ground: Any) -> tuple[Review, ...]:
        objection = Objection(about="layout", reason="scripted")
        reviews = criticise(drafts, space, ground)
        return tuple(r.model_copy(update={"objections": (objection,)}) for r in reviews)

    seen: list[str] = []
    monkeypatch.setattr(planning, "criticise", never)
    report = run_plan(FLAGS, progress=seen.append)
    assert seen.count("critic") == 3
    assert report.proposals == ()
    assert len(report.rejected) == 9
    assert report.abstained is not None
    assert report.abstained.next_steps == ("scripted",)


def test_what_fits_no_memory_is_said() -> None:
    # 405 billion parameters and 16 bytes each are 6.5 TB; 16 chips of v5e have 0.27 TB.
    report = run_plan(FLAGS.model_copy(update={"model": "llama3.1-405b"}))
    assert report.proposals == ()
    assert report.abstained is not None
    assert report.abstained.kind == "nothing_fits"


def test_a_program_of_a_known_shape_needs_no_flags() -> None:
    """Llama-like weights of one layer stack, cut over fsdp 2 × tensor 8, and a batch of tokens."""
    embed, mlp, vocab, layers, heads, kv, head = 4096, 14336, 128256, 32, 32, 8, 128

    def weight(name: str, *dims: int) -> Any:
        tiles = tuple(2 if i == len(dims) - 2 else 8 if i == len(dims) - 1 else 1
                      for i in range(len(dims)))  # fmt: skip
        local = tuple(d // t for d, t in zip(dims, tiles, strict=True))
        return parameter(f"params['{name}']", local, global_shape=dims, tiles=tiles)

    weights = (
        weight("embed_tokens", vocab, embed),
        weight("lm_head", embed, vocab),
        weight("layers']['attn']['q_proj", layers, embed, heads * head),
        weight("layers']['attn']['k_proj", layers, embed, kv * head),
        weight("layers']['attn']['v_proj", layers, embed, kv * head),
        weight("layers']['attn']['o_proj", layers, heads * head, embed),
        weight("layers']['mlp']['gate_proj", layers, embed, mlp),
        weight("layers']['mlp']['up_proj", layers, embed, mlp),
        weight("layers']['mlp']['down_proj", layers, mlp, embed),
    )
    tokens = parameter(
        "batch['tokens']", (16, 2048), dtype="s32", global_shape=(32, 2048), tiles=(2, 1)
    )
    traced = tensor_heavy(
        parameters=(*weights, tokens),
        top_ops=(op(tf_op="jit(step)/transpose(jvp(layer))/dot_general"),),
    )
    report = run_profile(traced, DiagnoseRequest())
    resolved(report)
    assert report.workload is not None
    assert (report.workload.global_batch, report.workload.sequence) == (32, 2048)
    assert report.workload.hardware == "v5e:4x4"
    assert len(report.proposals) == 3


def test_a_layout_that_nearly_fills_memory_is_not_proposed_above_one_that_fits() -> None:
    report = run_plan(FLAGS.model_copy(update={"top": 10}))
    limit = report.proposals[0].predicted.hbm_limit_bytes
    assert limit < 17 * GB  # 16 GB chips
    assert all(p.predicted.hbm_bytes <= limit for p in report.proposals)
    assert all(p.verdict.fits for p in report.proposals)


def test_a_diagnosis_needs_a_trace() -> None:
    with pytest.raises(InputError, match="no trace"):
        run_diagnosis(DiagnoseRequest())


def test_no_tracing_service_hears_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    run_plan(FLAGS)
    assert os.environ["LANGSMITH_TRACING"] == "false"


def test_the_real_knowledge_base_is_cited(with_index: None) -> None:
    report = run_profile(tensor_heavy(), DiagnoseRequest(workload=workload()))
    resolved(report)
    assert report.evidence
    assert any(r.recipe_ids for p in report.proposals for r in p.reasons)


def test_importing_the_graph_loads_nothing_heavy() -> None:
    code = (
        "import sys; import prompts_agent.agents.graph; "
        "heavy = {'langgraph', 'langchain_core', 'chromadb', 'jax', 'xprof', 'google.protobuf',"
        " 'prompts_agent.agents.planning', 'prompts_agent.estimate.estimator'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@settings(max_examples=20, deadline=None)
@given(
    shares=st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4),
    uses=st.lists(
        st.tuples(
            st.sampled_from(list(CollectiveKind)),
            st.sampled_from([None, "tensor", "fsdp", "fsdp+tensor", "axis0"]),
        ),
        max_size=3,
        unique=True,
    ),
    known=st.booleans(),
)
def test_every_id_resolves_whatever_was_measured(
    shares: list[float], uses: list[tuple[CollectiveKind, str | None]], known: bool
) -> None:
    names = ("compute_s", "host_transfer_s", "input_s", "idle_s")
    traced = tensor_heavy(
        breakdown=Breakdown(**dict(zip(names, shares, strict=True))),
        collectives=tuple(exposed(kind, axis, shares[0] / 2) for kind, axis in uses),
    )
    request = DiagnoseRequest(workload=workload()) if known else DiagnoseRequest()
    report = run_profile(traced, request)
    resolved(report)
    assert bool(report.proposals) is (report.abstained is None)


def test_layouts_of_serving_are_planned_too() -> None:
    report = run_plan(
        FLAGS.model_copy(update={"phase": Phase.DECODE, "objective": Objective.LATENCY})
    )
    resolved(report)
    assert report.proposals
    assert isinstance(report.proposals[0].layout, Layout)
