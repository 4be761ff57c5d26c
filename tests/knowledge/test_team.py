"""A team's recipes: a second directory, searched together, with ids of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_build import make_recipe

from prompts_agent.errors import RecipeError
from prompts_agent.knowledge.library import (
    find_recipe,
    leave_out,
    load_recipes,
    team_directory,
    together,
)
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.retrieve import retrieve
from prompts_agent.resources import data_directory

SOURCE = data_directory("knowledge_base")
ASKED = Query(findings=("straggler",), devices=64, phase="pretrain", chip="v5p")  # type: ignore[arg-type]


@pytest.fixture
def team(tmp_path: Path) -> Path:
    text = (SOURCE / "straggler-is-not-sharding.md").read_text(encoding="utf-8")
    ours = text.replace("id: straggler-is-not-sharding", "id: our-rack-seven").replace(
        "\ntitle: ", "\ntitle: In rack seven, "
    )
    (tmp_path / "our-rack-seven.md").write_text(ours, encoding="utf-8")
    return tmp_path


def test_both_are_searched(team: Path) -> None:
    assert "our-rack-seven" not in {item.recipe_id for item in retrieve(ASKED, k=50)}
    found = {item.recipe_id for item in retrieve(ASKED, k=50, extra=team)}
    assert {"our-rack-seven", "straggler-is-not-sharding"} <= found


def test_the_variable_names_the_directory(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_recipes()
    monkeypatch.setenv("PROMPTS_KB", str(team))
    assert team_directory() == team
    assert len(load_recipes()) == len(before) + 1
    assert find_recipe("our-rack-seven").id == "our-rack-seven"
    assert "our-rack-seven" in {item.recipe_id for item in retrieve(ASKED, k=50)}
    monkeypatch.setenv("PROMPTS_KB", "  ")
    assert team_directory() is None
    assert load_recipes() == before


def test_an_option_goes_before_the_variable(
    team: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMPTS_KB", str(tmp_path / "elsewhere"))
    assert team_directory(team) == team
    assert "our-rack-seven" in {recipe.id for recipe in load_recipes(extra=team)}


def test_a_directory_of_ones_own_is_not_joined_by_the_variable(
    team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMPTS_KB", str(team))
    assert "our-rack-seven" not in {recipe.id for recipe in load_recipes(SOURCE)}


def test_an_id_in_both_is_an_error_with_the_cure(team: Path) -> None:
    name = "straggler-is-not-sharding.md"
    text = (SOURCE / name).read_text(encoding="utf-8")
    (team / name).write_text(text.replace("\ntitle: ", "\ntitle: Ours, "), encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        load_recipes(extra=team)
    assert caught.value.value == f"recipe 'straggler-is-not-sharding' in {team}"
    assert caught.value.cure == (
        "Rename straggler-is-not-sharding.md and the `id` in it, for example to "
        "our-straggler-is-not-sharding."
    )


def test_a_directory_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTS_KB", str(tmp_path / "gone"))
    with pytest.raises(RecipeError, match="is not a directory"):
        load_recipes()


def test_together_is_by_id() -> None:
    both = together((make_recipe(id="b"), make_recipe(id="d")), (make_recipe(id="c"),))
    assert [recipe.id for recipe in both] == ["b", "c", "d"]


def test_cases_of_a_source_are_left_out() -> None:
    recipes = (
        make_recipe(id="rule"),
        make_recipe(id="case-one", kind="case"),
        make_recipe(
            id="case-two", kind="case", drawn_from={"source": "arXiv:2407.21783", "workload": "x"}
        ),
    )
    assert [r.id for r in leave_out(recipes, ["Owner/Name"])] == ["rule", "case-two"]
    assert [r.id for r in leave_out(recipes, ["arxiv:2407.21783"])] == ["rule", "case-one"]
    assert leave_out(recipes, ()) == recipes


def test_every_shipped_case_says_where_it_was_drawn_from() -> None:
    recipes = load_recipes()
    cases = [recipe for recipe in recipes if recipe.kind == "case"]
    assert len(cases) >= 35
    assert all(case.drawn_from is not None for case in cases)
    sources = {case.drawn_from.source for case in cases if case.drawn_from is not None}
    assert len(leave_out(recipes, sources)) == len(recipes) - len(cases)
