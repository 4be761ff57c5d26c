"""What a layout costs and ties down, with and without a layout to move from; recipes cited."""

from __future__ import annotations

from agents_build import GB, candidate, layout, workload

from prompts_agent.agents.critic.critic import review
from prompts_agent.agents.critic.evidence import Ground
from prompts_agent.agents.finding import Finding
from prompts_agent.agents.placeholders import fill
from prompts_agent.agents.planner.board import draft
from prompts_agent.agents.planner.bounds import batch_unit, kv_copies, vocab_padding
from prompts_agent.agents.planner.case import Case, changes_from_today
from prompts_agent.agents.planner.draft import Draft
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.layout import Layout, PipelineSchedule, Remat
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Phase

KV_SPLIT = Finding(
    id="kv_heads_split",
    kind=FindingKind.KV_HEADS_SPLIT,
    title="The tensor axis is larger than the number of KV heads",
    detail="Use fewer.",
    is_sharding=True,
    axis="tensor",
    fact_ids=("derived.tensor",),
)


def costs(of: Draft) -> list[str]:
    return [fill(text, (), of.figures) for text in of.tradeoffs]


def why(of: Draft) -> list[str]:
    return [fill(reason.text, (), of.figures) for reason in of.reasons]


def test_a_plan_from_nothing_says_what_the_layout_ties_down() -> None:
    # 32 sequences over 16 shards; 10 GB × 1.1 of 15 GB leave 27 %.
    made = draft(candidate(layout(data=16), time__matmul_s=1.0), Case(workload=workload()))
    assert costs(made) == [
        "The upper memory estimate leaves 27 % of HBM free.",
        "The global batch has to stay a multiple of 16 sequences; the next is 48.",
        "A run of this layout that takes longer than 1.10 s a step would show that the estimate is "
        "wrong for this job.",
    ]


def test_recomputation_is_a_change_only_where_there_was_another_policy() -> None:
    shape = layout(data=16).model_copy(update={"remat": Remat.NONE})
    nothing = draft(candidate(shape), Case(workload=workload()))
    assert not any("Recomputation" in text for text in costs(nothing))
    today = Case(workload=workload(), today=candidate(layout(fsdp=16)))
    assert any("(full → none)" in text for text in costs(draft(candidate(shape), today)))


def test_accumulation_costs_gathers_or_full_matrices_and_fills_a_pipeline() -> None:
    def told(shape: Layout) -> list[str]:
        more = shape.model_copy(update={"gradient_accumulation": 2})
        made = draft(candidate(more), Case(workload=workload()))
        return [text for text in costs(made) if text.startswith("Gradient")]

    assert told(layout(fsdp=16)) == [
        "Gradient accumulation 2: every pass gathers the weights over fsdp again."
    ]
    assert "matrix units" in told(layout(data=16))[0]
    assert told(layout(pipeline=2, data=8)) == []


def test_little_memory_left_is_said_whatever_one_starts_from() -> None:
    # 13 GB × 1.1 = 14.3 GB of 15 GB leave 5 %; 14 GB × 1.1 are above it.
    today = Case(workload=workload(), today=candidate(layout(fsdp=16)))
    tight = costs(draft(candidate(layout(data=16), hbm=13 * GB), today))
    assert any("leaves 5 % of HBM free, so" in text for text in tight)
    assert any("may not fit" in t for t in costs(draft(candidate(layout(), hbm=14 * GB), today)))
    roomy = costs(draft(candidate(layout(data=16)), today))
    assert not any("HBM" in text for text in roomy)


def test_kv_heads_that_stay_split_and_vocabularies_to_pad_are_said() -> None:
    # 8 KV heads over tensor 16: two ranks each. 128256 % 16 = 0, 50257 % 16 = 1.
    gpt2 = workload().model.model_copy(update={"vocab": 50257})
    case = Case(workload=workload(model=gpt2), findings=(KV_SPLIT,))
    told = costs(draft(candidate(layout(tensor=16)), case))
    assert told[:2] == [
        "The tensor axis stays above the 8 KV heads: 2 ranks hold the same keys and values.",
        "The vocabulary lacks 15 rows to come out even over tensor: pad it.",
    ]
    assert not any("KV" in text for text in costs(draft(candidate(layout(tensor=8)), case)))
    served = layout(tensor=16).model_copy(update={"attention_data": 2})
    assert kv_copies(served, workload(phase=Phase.DECODE)) == 1
    assert vocab_padding(layout(tensor=16), workload()) == 0


def test_an_interleaved_pipeline_takes_whole_rounds_of_the_batch() -> None:
    assert batch_unit(layout(data=4, pipeline=4)) == 4
    rounds = layout(data=4, pipeline=4).model_copy(
        update={"schedule": PipelineSchedule.INTERLEAVED}
    )
    assert batch_unit(rounds) == 16


def test_degrees_that_ran_elsewhere_are_what_changes_start_from() -> None:
    case = Case(workload=workload(), traced={Axis.DATA: 2, Axis.TENSOR: 16}, findings=(KV_SPLIT,))
    shape = layout(data=8, tensor=2).model_copy(update={"microbatch": 4})
    found = {change.what: change for change in changes_from_today(case, shape)}
    assert (found["data"].before, found["data"].after, found["data"].direction) == (
        "2", "8", "raise",
    )  # fmt: skip
    assert (found["tensor"].before, found["tensor"].direction) == ("16", "lower")
    # Of the knobs that ran nothing is known.
    assert (found["microbatch"].before, found["microbatch"].direction) == (None, "set")
    assert set(found) == {"data", "tensor", "microbatch"}
    made = draft(candidate(shape, time__matmul_s=1.0), case)
    assert made.reasons[0].text.startswith("Lowers the tensor axis ({change:tensor}).")
    assert made.figures["change:tensor"] == "16 → 2"
    assert made.reasons[0].fact_ids == ("derived.tensor",)


def test_knobs_of_the_other_phase_are_no_changes() -> None:
    shape = layout(tensor=16).model_copy(update={"remat": Remat.NONE, "kv_dtype": "fp8"})
    served = changes_from_today(Case(workload=workload(phase=Phase.DECODE)), shape)
    assert [change.what for change in served] == ["tensor", "kv_dtype"]
    trained = changes_from_today(Case(workload=workload()), shape)
    assert [change.what for change in trained] == ["tensor", "remat"]


def test_the_gain_is_said_with_its_interval_and_doubted_where_it_reaches_one() -> None:
    def against(low: float) -> Draft:
        made = candidate(layout(data=16), time__tensor_exposed_s=0.1)
        predicted = made.predicted.model_copy(
            update={"speedup": 1.1, "speedup_low": low, "speedup_high": 1.3}
        )
        today = candidate(layout(tensor=16), time__tensor_exposed_s=0.5)
        better = made.model_copy(update={"predicted": predicted})
        return draft(better, Case(workload=workload(), today=today))

    assert why(against(1.05)) == [
        "Predicted at 1.10× today's throughput (1.05× to 1.30×): waiting for tensor falls from "
        "500 ms to 100 ms, the largest gain of all its terms."
    ]
    assert not any("may be no faster" in text for text in costs(against(1.05)))
    assert any("may be no faster" in text and "0.95×" in text for text in costs(against(0.95)))


MOVES = {
    "more-context": (("tensor", "lower"), ("context", "raise")),
    "less-fsdp": (("fsdp", "lower"), ("tensor", "raise")),
    "microbatch": (("microbatch", "lower"),),
    "untitled": (("context", "raise"),),
}
TITLES = {"more-context": "Cut the sequence", "less-fsdp": "Fewer gathers", "microbatch": "Less"}


def test_a_plan_from_nothing_cites_recipes_for_the_axes_that_it_uses() -> None:
    case = Case(workload=workload(), moves=MOVES, titles=TITLES)
    made = draft(candidate(layout(fsdp=4, context=4), time__matmul_s=1.0), case)
    assert why(made) == ["As in “Cut the sequence”: context 4 rather than tensor."]
    assert made.reasons[0].recipe_ids == ("more-context",)
    # Tensor and fsdp both: each recipe would have one of the two lowered.
    both = draft(candidate(layout(fsdp=4, tensor=4), time__matmul_s=1.0), case)
    assert not any(reason.recipe_ids for reason in both.reasons)


def test_from_todays_layout_recipes_are_cited_with_what_they_change() -> None:
    today = candidate(layout(fsdp=4, tensor=4))
    case = Case(workload=workload(), moves=MOVES, titles=TITLES, today=today)
    made = draft(candidate(layout(fsdp=4, context=4), time__matmul_s=1.0), case)
    assert "As in “Cut the sequence”: tensor 4 → 1 and context 1 → 4." in why(made)


def test_every_sentence_of_these_drafts_passes_the_critic() -> None:
    job = workload()
    case = Case(workload=job, moves=MOVES, titles={**TITLES, "more-context": "Lower tensor 8 ×"})
    mesh = Mesh.of(fsdp=4, context=4)
    shape = Layout(mesh=mesh, microbatch=2, gradient_accumulation=4)
    made = draft(candidate(shape, time__matmul_s=1.0), case)
    assert review(made, search_space(job), Ground(moves=MOVES)).objections == ()
