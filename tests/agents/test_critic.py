"""The critic finds what is wrong with a layout, its memory, its words and its citations."""

from __future__ import annotations

import pytest
from agents_build import GB, candidate, draft, fact, layout, workload

from prompts_agent.agents.critic.claims import claims, contradicted
from prompts_agent.agents.critic.critic import criticise, review
from prompts_agent.agents.critic.evidence import Ground
from prompts_agent.agents.critic.review import Review
from prompts_agent.agents.planner.draft import Draft
from prompts_agent.agents.report import Change, Reason
from prompts_agent.layout.layout import Layout
from prompts_agent.workload.search_space import search_space

SPACE = search_space(workload())
# 32 sequences ÷ 16 batch shards = 2 = microbatch 1 × accumulation 2.
LEGAL = layout(fsdp=16).model_copy(update={"gradient_accumulation": 2})
GROUND = Ground(
    facts=(fact("step_time", 1.0),),
    moves={"raise-fsdp": (("fsdp", "raise"),), "no-tensor": (("tensor", "set_one"),), "talk": ()},
)
RAISED = (Change(what="fsdp", before="4", after="16", direction="raise"),)


def argued(text: str, *, facts: tuple[str, ...] = ("step_time",), **more: object) -> Draft:
    reason = Reason.model_validate({"text": text, "fact_ids": facts} | more)
    return draft(candidate(LEGAL, time__matmul_s=0.5), changes=RAISED, reasons=(reason,))


def words(of: Draft) -> list[str]:
    return [item.reason for item in reviewed(of).objections]


def reviewed(of: Draft, ground: Ground = GROUND) -> Review:
    return review(of, SPACE, ground)


def test_a_sound_draft_passes_with_every_check_spelled_out() -> None:
    verdict = reviewed(argued("Raises fsdp.")).verdict
    assert verdict.legal
    assert verdict.fits
    assert any("16" in text and "devices" in text for text in verdict.checks)
    assert any("11.0 GB ≤ 15.0 GB" in text for text in verdict.checks)
    assert verdict.contradictions == ()


@pytest.mark.parametrize(
    ("shape", "word"),
    [
        (layout(fsdp=8), "devices"),  # 8 of 16 devices
        (layout(tensor=16), "batch"),  # 32 ÷ 1 batch shard: 1 × 1 is not 32
        (layout(expert=16), "expert"),  # a dense model
        (layout(data=16), "batch"),
    ],
)
def test_an_illegal_layout_goes_back_with_the_arithmetic(shape: Layout, word: str) -> None:
    result = reviewed(draft(candidate(shape)))
    assert not result.verdict.legal
    assert result.needs_other_layout
    assert any(word in item.reason for item in result.objections)


def test_the_upper_end_of_the_memory_estimate_must_fit() -> None:
    # 14 GB fit 15 GB, but up to 15.4 GB may be needed.
    tight = draft(candidate(LEGAL, hbm=14 * GB))
    result = reviewed(tight)
    assert not result.verdict.fits
    assert [item.about for item in result.objections] == ["memory"]
    assert result.objections[0].overshoot == pytest.approx(15.4 / 15 - 1)


def test_where_nothing_surely_fits_the_estimate_decides_and_the_verdict_says_so() -> None:
    ground = Ground(upper_bound_must_fit=False)
    result = reviewed(draft(candidate(LEGAL, hbm=14 * GB)), ground)
    assert result.passed
    assert not result.verdict.fits
    assert any("may not fit" in text for text in result.verdict.checks)
    assert not reviewed(draft(candidate(LEGAL, hbm=16 * GB)), ground).passed


def test_the_same_mesh_twice_is_one_proposal_too_many() -> None:
    other = LEGAL.model_copy(update={"microbatch": 2, "gradient_accumulation": 1})
    first, second = criticise([draft(candidate(LEGAL)), draft(candidate(other))], SPACE, GROUND)
    assert first.passed
    assert "proposed already" in second.objections[0].reason


def test_a_title_that_says_the_opposite_of_its_mesh_is_found() -> None:
    # Appendix A.3.2 of the published agent: titled "aggressive model parallelism reduction",
    # while the model axis went from 4 to 8.
    change = (Change(what="tensor", before="4", after="8", direction="raise"),)
    (sentence,) = contradicted("Aggressive model parallelism reduction", change)
    assert "raises it" in sentence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Raises fsdp to {change:fsdp}.", [("fsdp", "raise")]),
        ("raises the fsdp axis", [("fsdp", "raise")]),
        ("lowers the size of the tensor axis", [("tensor", "lower")]),
        ("reduces tensor parallelism and increases data parallelism",
         [("tensor", "lower"), ("data", "raise")]),
        ("sequence parallelism increase", [("context", "raise")]),
        ("lowers the exposed all-reduce over tensor", []),
        ("moves less data", []),
        ("a smaller model", []),
        ("more tensor cores", []),
        ("lowers tensor-core idle time", []),
        ("a smaller data-pipeline", []),
    ],
)  # fmt: skip
def test_claims_about_axes(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(claim.axis.value, claim.direction) for claim in claims(text)] == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Lowers fsdp.", "raises it"),
        ("Lowers the tensor axis.", "leaves it as it is"),
        ("Saves 40% of the step.", "40"),
        ("Halves the step.", "Halves"),
        ("Takes {fact:nobody_measured}.", "nobody_measured"),
        ("Takes {term:time.nothing_s}.", "time.nothing_s"),
    ],
)
def test_words_that_the_layout_or_the_evidence_do_not_bear_out(text: str, word: str) -> None:
    result = reviewed(argued(text))
    assert not result.passed
    assert not result.needs_other_layout
    assert any(word in item.reason for item in result.objections)
    assert all(item.text == text for item in result.objections)


def test_ids_have_to_resolve() -> None:
    assert words(argued("So.", facts=("missing",))) == ["fact missing does not exist"]
    assert words(argued("So.", recipe_ids=("unheard-of",))) == [
        "recipe unheard-of was not retrieved"
    ]
    assert words(argued("So.", term_ids=("time.x_s",))) == ["term time.x_s is not in the estimate"]
    assert words(argued("So.", term_ids=("time.matmul_s",))) == []
    assert words(argued("So.", facts=())) == ["the sentence rests on no fact, recipe or term"]


def test_a_recipe_that_asks_for_the_opposite_may_not_be_cited() -> None:
    lowered = (Change(what="fsdp", before="16", after="4", direction="lower"),)
    reason = Reason(text="So.", recipe_ids=("raise-fsdp",))
    against = draft(candidate(LEGAL), changes=lowered, reasons=(reason,))
    assert words(against) == ["recipe raise-fsdp says raise fsdp, the layout does the opposite"]
    assert words(argued("So.", recipe_ids=("raise-fsdp",))) == []
    assert words(argued("So.", recipe_ids=("no-tensor",))) == []  # leaves tensor alone
    assert words(argued("So.", recipe_ids=("talk",))) == []
