"""The difference that recipes would make, with its interval."""

from __future__ import annotations

from prompts_agent.evaluate.by_recipes import BY_RECIPES, effect, principles_digest
from prompts_agent.evaluate.score import ADVISOR, Method, Score, Tags

TAGS = Tags(
    chip="v5e", platform="tpu", phase="pretrain", family="llama", framework="MaxText",
    collection="a/b", kind_of_model="dense", devices=16,
)  # fmt: skip


def score(name: str, without: float, with_recipes: float) -> Score:
    methods = {
        ADVISOR: Method(top_1=without, top_3=1.0),
        BY_RECIPES: Method(top_1=with_recipes, top_3=1.0),
    }
    return Score(kind="adopted", workload=name, cluster=name, tags=TAGS, methods=methods)


def test_points_with_less_points_without() -> None:
    # One of four workloads is won and none lost: +25 points; among three nothing changes.
    scores = [
        score("a", 0.0, 1.0),
        score("b", 1.0, 1.0),
        score("c", 0.0, 0.0),
        score("d", 1.0, 1.0),
    ]
    text = effect(scores)
    assert text is not None
    assert "first +25.0 points (+0.0 to +75.0)" in text
    assert "among three +0.0 points (+0.0 to +0.0)" in text
    assert text.startswith("The knowledge base changes no rank.")


def test_without_adopted_layouts_there_is_nothing_to_say() -> None:
    assert effect([]) is None


def test_the_digest_is_the_same_every_time() -> None:
    assert principles_digest() == principles_digest()
    assert len(principles_digest()) == 64
