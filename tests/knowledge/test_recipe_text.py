"""Recipes back as files, into a team's directory, over nothing that is there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from recipe_build import BODY, make_recipe

from prompts_agent.errors import OutputError, RecipeError
from prompts_agent.knowledge.base import OWN_CASES, KnowledgeBase
from prompts_agent.knowledge.check import check
from prompts_agent.knowledge.library import load_recipes, together
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.recipe_file import parse_recipe
from prompts_agent.knowledge.recipe_text import add_recipe, recipe_text, team_folder
from prompts_agent.resources import data_directory

HERE: dict[str, Any] = {
    "kind": "case",
    "drawn_from": {"source": "here", "workload": "dense 1B"},
    "sources": [],
    "body": BODY.strip(),
}


OTHER = BODY.replace("Lower it.", "Halve the axis.")


@pytest.mark.parametrize("recipe", load_recipes(), ids=lambda recipe: recipe.id)
def test_every_shipped_recipe_reads_back_as_it_was(recipe: object) -> None:
    assert parse_recipe(recipe_text(recipe), "x") == recipe  # type: ignore[arg-type]


def test_a_recipe_is_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    recipe = make_recipe(id="ours", **HERE)
    path = add_recipe(recipe, folder)
    assert path == folder / "ours.md"
    assert load_recipes(folder) == (recipe,)
    assert check(folder) == []
    with pytest.raises(RecipeError, match="is there already"):
        add_recipe(make_recipe(id="ours", title="Another", **HERE), folder)
    assert load_recipes(folder) == (recipe,)
    assert [p.name for p in folder.iterdir()] == ["ours.md"]


def test_a_shipped_id_is_taken(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="that came with this package"):
        add_recipe(make_recipe(id="wrap-the-ring"), tmp_path)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is no directory"):
        add_recipe(make_recipe(), tmp_path / "file")


def test_the_shipped_directory_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = data_directory("knowledge_base")
    monkeypatch.delenv("PROMPTS_KB", raising=False)
    with pytest.raises(RecipeError, match="--kb-path DIR or PROMPTS_KB"):
        team_folder()
    monkeypatch.setenv("PROMPTS_KB", str(shipped))
    with pytest.raises(RecipeError, match="came with this package"):
        team_folder()
    assert team_folder(shipped) == shipped


def test_no_shipped_recipe_was_measured_here() -> None:
    assert not any(recipe.measured_here for recipe in load_recipes())


def test_only_a_case_of_ones_own_needs_no_source() -> None:
    with pytest.raises(ValueError, match="has a public source"):
        make_recipe(sources=[])


def _on(devices: int) -> dict[str, str]:
    return {"body": BODY.strip().replace("Lower it.", f"Lower it on {devices} chips.")}


def test_own_measurements_go_first_but_crowd_nothing_out() -> None:
    own = [
        make_recipe(id=f"here-{n}", min_devices=n // 4, max_devices=n * 4, **HERE | _on(n))
        for n in (32, 64, 128, 256)
    ]
    asked = Query(findings=("exposed_collective",), phase="pretrain", devices=64, chip="v6e")
    with KnowledgeBase((*load_recipes(), *own)) as base:
        found = base.retrieve(asked, 8)
    assert [item.recipe_id for item in found[:OWN_CASES]] == ["here-64", "here-128"]
    assert {item.source for item in found[:2]} == {"measured here"}
    assert "measured here" in found[0].reasons
    assert sum(item.recipe_id.startswith("here") for item in found) < len(own) + 1
    assert not found[2].recipe_id.startswith("here")


def test_the_same_recipe_in_both_places_counts_once() -> None:
    recipe = make_recipe()
    assert together((recipe,), (recipe,)) == (recipe,)
    with pytest.raises(RecipeError, match="is in the knowledge base already"):
        together((recipe,), (make_recipe(title="Another"),))


def test_a_copy_under_another_id_is_not_returned_twice() -> None:
    asked = Query(findings=("exposed_collective",), phase="pretrain", devices=64)
    copies = (make_recipe(id="one"), make_recipe(id="two"), make_recipe(id="three", body=OTHER))
    with KnowledgeBase(copies) as base:
        assert [item.recipe_id for item in base.retrieve(asked)] == ["one", "three"]


def test_of_eight_at_once_one_writes(tmp_path: Path) -> None:
    versions = [make_recipe(id="ours", title=f"Version {n}", **HERE) for n in range(8)]

    def add(recipe: Recipe) -> bool:
        try:
            return add_recipe(recipe, tmp_path).is_file()
        except RecipeError:
            return False

    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(add, versions))
    assert sum(written) == 1
    assert load_recipes(tmp_path) == (versions[written.index(True)],)
    assert [path.name for path in tmp_path.iterdir()] == ["ours.md"]
