from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recipe_build import BODY, make_recipe

from prompts_agent.errors import InputError
from prompts_agent.knowledge.library import load_recipes
from prompts_agent.knowledge.query import Query, unmet
from prompts_agent.knowledge.retrieve import retrieve

TENSOR: dict[str, Any] = {
    "phase": "pretrain",
    "chip": "v5p",
    "architecture": ("dense", "kv_heads"),
    "findings": ("exposed_collective",),
    "axes": ("tensor",),
    "devices": 64,
    "sequence": 4096,
    "text": "all-reduce over tensor is exposed",
}


def ids(k: int = 5, **asked: Any) -> list[str]:
    return [item.recipe_id for item in retrieve(Query.model_validate(asked), k=k)]


def test_the_fused_order_worked_out_by_hand() -> None:
    """Ranks: findings 1, 1, 3 (the third treats the second finding only); words and similarity by
    how much of the query a text shares: the second all of it, the first and the third less."""
    recipes = (
        make_recipe(id="first", title="Lower tensor"),
        make_recipe(id="second", title="Lower tensor where reductions are exposed in the trace"),
        make_recipe(id="third", title="Unrelated words entirely", findings=["straggler"]),
    )
    asked = Query.model_validate(
        {**TENSOR, "findings": ("exposed_collective", "straggler"), "axes": ()}
        | {"text": "lower tensor where reductions are exposed in the trace"}
    )
    found = {item.recipe_id: item for item in retrieve(asked, recipes=recipes)}
    assert list(found) == ["second", "first", "third"]
    assert found["second"].score == pytest.approx(1.0)
    # (1/61 + 1/61 + 1/62 + 1/62) / (4/61) and (1/63 * 4) / (4/61)
    assert found["first"].score == pytest.approx((2 + 2 * 61 / 62) / 4)
    assert found["third"].score == pytest.approx(61 / 63)


def test_scores_follow_from_the_ranks_in_the_reasons() -> None:
    found = retrieve(Query.model_validate(TENSOR))
    assert len(found) >= 3
    for item in found:
        ranks = dict(
            re.findall(r"(\d+) by (\w+)", item.reasons[-1])
            and [
                (name, int(rank)) for rank, name in re.findall(r"(\d+) by (\w+)", item.reasons[-1])
            ]
        )
        places = [ranks["findings"], ranks["findings"], ranks["words"], ranks["similarity"]]
        assert item.score == pytest.approx(sum(61 / (60 + place) for place in places) / 4)
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)


def test_evidence_says_why() -> None:
    best = retrieve(Query.model_validate(TENSOR))[0]
    assert best.recipe_id == "tensor-axis-too-large"
    assert best.source == "https://jax-ml.github.io/scaling-book/training/"
    assert best.reasons[0] == "treats exposed_collective"
    assert best.reasons[1] == (
        "applies to pretrain, posttrain, prefill; any chip; any model; 4 devices or more"
    )
    assert "tensor" in best.reasons[2]


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ({"axes": ("data",), "text": "all-reduce over data"}, "data-all-reduce-to-reduce-scatter"),
        ({"axes": ("context",), "text": ""}, "context-to-data-same-tokens"),
        ({"axes": (), "findings": ("input_bound",), "text": ""}, "input-bound-is-not-sharding"),
        ({"axes": (), "findings": ("straggler",), "text": ""}, "straggler-is-not-sharding"),
        ({"axes": (), "findings": ("none",), "text": ""}, "nothing-stands-out-measure-first"),
        (
            {"axes": (), "findings": ("pipeline_bubble",), "text": ""},
            "pipeline-bubble-more-microbatches",
        ),
        (
            {"architecture": ("moe", "mla"), "axes": ("fsdp",), "findings": ("small_matmuls",)},
            "moe-expert-axis-in-fast-domain",
        ),
    ],
)
def test_what_an_engineer_would_look_up_comes_first(changed: dict[str, Any], first: str) -> None:
    assert ids(**{**TENSOR, **changed})[0] == first


def test_the_first_thing_to_try_against_gathers_is_near_the_top() -> None:
    asked = {**TENSOR, "axes": ("fsdp",), "text": "all-gather over fsdp"}
    assert "fsdp-more-tokens-per-gather" in ids(**asked)[:2]


def test_serving_depends_on_the_objective() -> None:
    serving = {**TENSOR, "phase": "decode", "findings": ("memory_bandwidth_bound",), "text": ""}
    throughput = ids(k=50, **serving, objective="throughput")
    latency = ids(k=50, **serving, objective="latency")
    assert "decode-replicas-for-throughput" in throughput
    assert "decode-replicas-for-throughput" not in latency
    assert latency[0] == "decode-tensor-for-latency"


def test_only_what_applies_is_returned() -> None:
    asked = Query.model_validate({**TENSOR, "axes": (), "chip": "h100", "text": "moe expert tpu"})
    found = retrieve(asked, k=50)
    by_id = {recipe.id: recipe for recipe in load_recipes()}
    assert {item.recipe_id for item in found} == {
        r.id for r in by_id.values() if not unmet(r, asked)
    }
    assert not any("moe" in item.recipe_id for item in found)
    assert not any(by_id[item.recipe_id].applies.chips == ("tpu",) for item in found)


def test_nothing_applies() -> None:
    assert ids(**{**TENSOR, "phase": "decode", "findings": ("pipeline_bubble",)}) == []


def test_at_most_k_and_k_is_positive() -> None:
    assert len(ids(k=2, **TENSOR)) == 2
    with pytest.raises(InputError, match="k 0: retrieval returns at least one recipe"):
        ids(k=0, **TENSOR)


def test_of_equal_ids_the_last_counts() -> None:
    pair = (make_recipe(title="Old"), make_recipe(title="New"))
    found = retrieve(Query.model_validate(TENSOR), recipes=pair)
    assert [item.title for item in found] == ["New"]


def test_retrievals_in_one_process_do_not_interfere() -> None:
    asked = Query.model_validate(TENSOR)
    before = retrieve(asked)
    assert [e.recipe_id for e in retrieve(asked, recipes=(make_recipe(body=BODY),))] == ["lower-it"]
    assert retrieve(asked) == before


def test_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert ids(**TENSOR)


CODE = """
import sys
from prompts_agent.knowledge.retrieve import retrieve
from prompts_agent.knowledge.query import Query
heavy = {"chromadb", "numpy", "jax"} & set(sys.modules)
assert not heavy, heavy
query = Query(phase="pretrain", findings=("exposed_collective",), devices=64, text="fsdp")
print([item.model_dump_json() for item in retrieve(query)])
"""


def test_a_process_is_quiet_writes_nothing_and_repeats_itself(tmp_path: Path) -> None:
    """Two processes with different hash seeds, warnings as errors, an empty home and cwd."""
    outputs = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", CODE],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "PYTHONHASHSEED": seed,
                "PYTHONDONTWRITEBYTECODE": "1",
                "HOME": str(tmp_path),
                "TMPDIR": str(tmp_path),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert list(tmp_path.iterdir()) == []
