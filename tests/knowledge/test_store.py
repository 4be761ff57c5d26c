from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from recipe_build import make_recipe

from prompts_agent.errors import OutputError, RecipeError
from prompts_agent.knowledge.embed import embed
from prompts_agent.knowledge.index import document
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.retrieve import retrieve
from prompts_agent.knowledge.store import COLLECTION, build, store_path, stored_vectors

RECIPES = (make_recipe(id="one"), make_recipe(id="two", title="Raise the data axis"))


def test_a_built_index_gives_the_vectors_back_in_any_order(tmp_path: Path) -> None:
    assert stored_vectors(RECIPES, tmp_path) is None
    place = build(RECIPES, tmp_path)
    assert place == store_path(RECIPES, tmp_path) == store_path(RECIPES[::-1], tmp_path)
    assert sorted(path.name for path in place.iterdir()) == [
        "chroma",
        "manifest.json",
        "vectors.npz",
    ]
    for order in (RECIPES, RECIPES[::-1]):
        stored = stored_vectors(order, tmp_path)
        assert stored is not None
        assert np.array_equal(stored, embed([document(recipe) for recipe in order]))


def test_another_text_is_another_path(tmp_path: Path) -> None:
    build(RECIPES, tmp_path)
    changed = (make_recipe(id="one", costs="None at all."), RECIPES[1])
    assert store_path(changed, tmp_path) != store_path(RECIPES, tmp_path)
    assert stored_vectors(changed, tmp_path) is None


def test_nothing_but_the_index_and_the_lock_is_left(tmp_path: Path) -> None:
    place = build(RECIPES, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [place.name, "build.lock"]
    before = (place / "manifest.json").stat().st_mtime_ns
    assert build(RECIPES, tmp_path) == place
    assert (place / "manifest.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", ["cut", "other bytes", "no manifest", "odd manifest"])
def test_a_damaged_index_is_not_used_and_is_built_again(tmp_path: Path, damage: str) -> None:
    place = build(RECIPES, tmp_path)
    vectors, manifest = place / "vectors.npz", place / "manifest.json"
    if damage == "cut":
        vectors.write_bytes(vectors.read_bytes()[:100])
    elif damage == "other bytes":
        np.savez(vectors, ids=np.array(["one", "two"]), vectors=np.zeros((2, 512), np.float32))
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text("[]", encoding="utf-8")
    assert stored_vectors(RECIPES, tmp_path) is None
    assert build(RECIPES, tmp_path) == place
    assert stored_vectors(RECIPES, tmp_path) is not None


def test_a_pickle_in_the_index_is_not_run(tmp_path: Path) -> None:
    import hashlib

    place = build(RECIPES, tmp_path)
    np.savez(place / "vectors.npz", ids=np.array([object()], dtype=object), vectors=np.zeros(1))
    sum_ = hashlib.sha256((place / "vectors.npz").read_bytes()).hexdigest()
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    manifest["vectors_sha256"] = sum_
    (place / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert stored_vectors(RECIPES, tmp_path) is None


def test_no_recipes(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="holds at least one"):
        build((), tmp_path)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OutputError, match="cannot be written"):
        build(RECIPES, tmp_path / "file" / "below")


def test_a_lock_that_stays_is_an_error_and_no_wait_for_ever(tmp_path: Path) -> None:
    from filelock import FileLock

    with (
        FileLock(tmp_path / "build.lock"),
        pytest.raises(OutputError, match=r"has built for more than 0\.2 s"),
    ):
        build(RECIPES, tmp_path, wait_s=0.2)


def test_the_chroma_directory_opens(tmp_path: Path) -> None:
    import chromadb
    from chromadb.config import Settings

    place = build(RECIPES, tmp_path)
    client = chromadb.PersistentClient(str(place / "chroma"), Settings(anonymized_telemetry=False))
    collection = client.get_collection(COLLECTION, None)
    assert set(collection.get()["ids"]) == {"one", "two"}
    client.close()


CODE = """
from prompts_agent.knowledge.library import load_recipes
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.retrieve import open_base
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.retrieve import retrieve
from prompts_agent.knowledge.store import build
build(load_recipes(), wait_s=100)
with open_base() as base:
    found = base.retrieve(Query(phase="pretrain", chip="v5p", devices=64, text="fsdp"))
print([(item.recipe_id, item.score) for item in found])
"""


def test_a_run_takes_the_vectors_of_the_built_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = Query(phase="pretrain", devices=64, text="fsdp")
    # Texts of their own, so that no other test has opened them.
    recipes = (make_recipe(id="one", costs="Ours."), make_recipe(id="two", costs="Ours too."))
    made: list[int] = []
    monkeypatch.setattr(
        "prompts_agent.knowledge.embed.embed", lambda texts: made.append(len(texts)) or embed(texts)
    )
    plain = retrieve(asked, recipes=recipes)
    assert 2 in made  # both recipes
    build(recipes)
    made.clear()
    monkeypatch.setattr("prompts_agent.knowledge.retrieve._open", [])
    assert retrieve(asked, recipes=recipes) == plain
    assert set(made) == {1}  # the question alone


def test_eight_processes_at_once_neither_hang_nor_damage_it(tmp_path: Path) -> None:
    """All eight want the same index that is not there yet; each then asks it."""
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", CODE],
            env={
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "XDG_CACHE_HOME": str(tmp_path),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    try:
        done = [process.communicate(timeout=240) for process in running]
    finally:
        for process in running:
            process.kill()
    assert [(process.returncode, err) for process, (_, err) in zip(running, done, strict=True)] == [
        (0, "")
    ] * 8
    assert len({out for out, _ in done}) == 1
    assert done[0][0].startswith("[('")
    names = sorted(path.name for path in (tmp_path / "prompts" / "knowledge").iterdir())
    assert len(names) == 2
    assert "build.lock" in names
