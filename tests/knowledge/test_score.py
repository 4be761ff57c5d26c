"""Figures worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from recipe_build import make_recipe

from prompts_agent.errors import InputError
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.score import Question, evaluate, load_questions, render, scores


def test_scores_by_hand() -> None:
    ranked = [["a", "b", "c", "d", "e", "f"], ["x", "y", "z"], []]
    wanted = [["b", "f"], ["x"], ["q"]]
    found = scores(ranked, wanted)
    # Recall: 1 of 2 (f is sixth), 1 of 1, 0. Reciprocal ranks: 1/2, 1, 0.
    assert found.recall_at_5 == pytest.approx((0.5 + 1 + 0) / 3)
    assert found.mrr == pytest.approx((0.5 + 1 + 0) / 3)
    # First: 1 / log2(3) of 1 + 1 / log2(3); second: 1; third: 0.
    second = 1 / math.log2(3)
    assert found.ndcg_at_5 == pytest.approx((second / (1 + second) + 1) / 3)
    assert found.questions == 3


def question(*wants: str) -> Question:
    asked = Query.model_validate(
        {
            "phase": "pretrain",
            "findings": ("exposed_collective",),
            "devices": 8,
            "text": "tensor reductions",
        }
    )
    return Question(id="q", part="tune", source="https://example.org/q", ask=asked, wants=wants)


def test_the_filter_leaves_out_what_does_not_apply() -> None:
    recipes = (
        make_recipe(id="fits"),
        make_recipe(id="other", title="Tensor reductions", phases=["decode"]),
    )
    found = evaluate([question("fits")], recipes)
    assert list(found) == ["lexical", "dense", "fused", "filter+fused"]
    assert found["filter+fused"].mrr == 1
    assert found["lexical"].mrr == 0.5
    assert "filter+fused" in render({"all": found})


def test_a_question_for_a_recipe_that_is_gone() -> None:
    with pytest.raises(InputError, match="question q: 'gone': there is no such recipe"):
        evaluate([question("gone")], (make_recipe(),))


@pytest.mark.parametrize("text", ["", "- id: x\n", "a: b\n", "[", "- 1\n"])
def test_a_file_without_questions(tmp_path: Path, text: str) -> None:
    path = tmp_path / "questions.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        load_questions(path)
