from __future__ import annotations

from pathlib import Path

import pytest
from recipe_build import make_recipe

from prompts_agent.errors import RecipeError
from prompts_agent.knowledge.library import find_recipe, library_digest, load_recipes
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.resources import data_directory


def test_the_shipped_recipes_are_sorted_and_unique() -> None:
    ids = [recipe.id for recipe in load_recipes()]
    assert len(ids) >= 14
    assert ids == sorted(set(ids))


def test_every_finding_has_a_recipe() -> None:
    treated = {kind for recipe in load_recipes() for kind in recipe.applies.findings}
    assert treated == set(FindingKind)


@pytest.mark.parametrize(
    "kind",
    [
        "host_transfer",
        "input_bound",
        "recompiling",
        "straggler",
        "idle_between_steps",
        "trace_too_poor",
    ],
)
def test_what_no_mesh_cures_has_recipes_that_move_none(kind: str) -> None:
    recipes = [recipe for recipe in load_recipes() if kind in recipe.applies.findings]
    assert recipes
    assert not any(recipe.sharding for recipe in recipes)


def test_no_recipe_raises_the_axis_whose_collectives_it_is_for() -> None:
    for recipe in load_recipes():
        raised = {change.axis for change in recipe.changes if change.move == "raise"}
        assert not raised & set(recipe.applies.axes), recipe.id


def test_digest_follows_what_recipes_say() -> None:
    one, two = make_recipe(id="one"), make_recipe(id="two")
    assert library_digest((one, two)) == library_digest((two, one))
    assert library_digest((one,)) != library_digest((two,))
    assert library_digest((one,)) != library_digest((make_recipe(id="one", costs="None."),))
    assert len(library_digest(())) == 64


def test_a_directory_is_read_without_its_readme(tmp_path: Path) -> None:
    source = data_directory("knowledge_base")
    for name in ("straggler-is-not-sharding.md", "input-bound-is-not-sharding.md", "README.md"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    ids = [recipe.id for recipe in load_recipes(tmp_path)]
    assert ids == ["input-bound-is-not-sharding", "straggler-is-not-sharding"]


def test_no_such_directory(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="is not a directory"):
        load_recipes(tmp_path / "none")


def test_find_recipe() -> None:
    recipe = make_recipe()
    assert find_recipe("lower-it", (recipe,)) is recipe
    with pytest.raises(RecipeError, match=r"recipe 'x': is not in the knowledge base.*lower-it"):
        find_recipe("x", (recipe,))
    with pytest.raises(RecipeError, match="is empty"):
        find_recipe("x", ())
