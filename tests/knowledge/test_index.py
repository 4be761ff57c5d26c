"""Chroma's filter and our own predicate are the same; the index leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recipe_build import make_recipe

from prompts_agent.errors import InternalError
from prompts_agent.knowledge.embed import embed
from prompts_agent.knowledge.index import Index, document
from prompts_agent.knowledge.query import Query, unmet
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.vocabulary import Architecture, FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Objective, Phase

CONDITIONS: list[dict[str, Any]] = [
    {},
    {"phases": ["decode", "serve"]},
    {"phases": list(Phase)},
    {"chips": ["v5p"]},
    {"chips": ["gpu"]},
    {"chips": ["tpu", "h100"], "phases": list(Phase)},
    {"architectures": ["moe"]},
    {"architectures": ["dense", "mla"]},
    {"findings": ["straggler", "none"]},
    {"findings": ["exposed_collective", "straggler"], "axes": ["fsdp", "context"]},
    {"axes": ["tensor"]},
    {"objectives": ["latency"]},
    {"min_devices": 8},
    {"max_devices": 64},
    {"min_devices": 8, "max_devices": 64, "max_sequence": 8192},
    {"min_sequence": 8192},
    {"sharding": False, "changes": []},
    {"sharding": False, "changes": [], "phases": list(Phase), "findings": ["straggler"]},
]


@pytest.fixture(scope="module")
def recipes() -> tuple[Recipe, ...]:
    return tuple(make_recipe(id=f"r{n}", **made) for n, made in enumerate(CONDITIONS))


@pytest.fixture(scope="module")
def index(recipes: tuple[Recipe, ...]) -> Iterator[Index]:
    # With vectors at hand all recipes are in Chroma, so that its own filter has to choose.
    with Index(recipes, embed([document(recipe) for recipe in recipes])) as opened:
        yield opened


queries = st.builds(
    Query,
    phase=st.none() | st.sampled_from(Phase),
    chip=st.sampled_from([None, "v5p", "v5e", "h100"]),
    architecture=st.sampled_from([(), (Architecture.DENSE,), (Architecture.MOE, Architecture.MLA)]),
    findings=st.lists(st.sampled_from(FindingKind), max_size=3).map(tuple)
    | st.just((FindingKind.EXPOSED_COLLECTIVE,)),
    axes=st.lists(st.sampled_from(Axis), max_size=2).map(tuple),
    devices=st.sampled_from([None, 1, 8, 64, 65, 10_000]),
    sequence=st.sampled_from([None, 1, 8191, 8192]),
    objective=st.sampled_from(Objective),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(asked=queries)
def test_chroma_filters_as_we_do(index: Index, recipes: tuple[Recipe, ...], asked: Query) -> None:
    found = index.similarities(asked)
    assert set(found) == {recipe.id for recipe in recipes if not unmet(recipe, asked)}
    assert all(-1.001 <= similarity <= 1.001 for similarity in found.values())


def test_vectors_made_when_a_query_needs_them_give_the_same(
    index: Index, recipes: tuple[Recipe, ...]
) -> None:
    training = Query(phase=Phase.PRETRAIN, findings=(FindingKind.EXPOSED_COLLECTIVE,))
    serving = Query(phase=Phase.DECODE, chip="v5e", findings=tuple(FindingKind)[:3])
    with Index(recipes) as lazy:
        for asked in (training, serving, training):
            assert lazy.similarities(asked) == pytest.approx(index.similarities(asked))


def test_two_indexes_at_once_do_not_mix() -> None:
    asked = Query(
        phase=Phase.PRETRAIN, findings=(FindingKind.EXPOSED_COLLECTIVE,), text="tensor axis"
    )
    one, two = make_recipe(id="one"), make_recipe(id="two")
    with Index((one,)) as first, Index((two,)) as second:
        assert set(first.similarities(asked)) == {"one"}
        assert set(second.similarities(asked)) == {"two"}


def test_no_collection_is_left_behind() -> None:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    before = {collection.name for collection in client.list_collections()}
    asked = Query(phase=Phase.PRETRAIN, findings=(FindingKind.EXPOSED_COLLECTIVE,))
    with Index((make_recipe(),)) as index:
        assert {collection.name for collection in client.list_collections()} == before
        assert set(index.similarities(asked)) == {"lower-it"}
        assert len(client.list_collections()) == len(before) + 1
    assert {collection.name for collection in client.list_collections()} == before


def test_an_empty_index() -> None:
    with Index(()) as empty:
        assert empty.similarities(Query()) == {}


def test_a_chroma_that_does_not_start_says_how_to_mend_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import chromadb

    def fail(*_: object) -> None:
        raise OSError("read-only file system")

    monkeypatch.setattr(chromadb, "EphemeralClient", fail)
    asked = Query(phase=Phase.PRETRAIN, findings=(FindingKind.EXPOSED_COLLECTIVE,))
    with pytest.raises(InternalError) as caught, Index((make_recipe(),)) as index:
        index.similarities(asked)
    assert caught.value.value == "chromadb (OSError: read-only file system)"
    assert "did not start" in caught.value.rule
    assert "Reinstall" in caught.value.cure
