"""vLLM's command on TPU, and the product of tpu-inference's mesh."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from emit_build import MOE, job, layout

from prompts_agent.emit.registry import emit
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.workload.workload import Phase

DIVIDES = {"expert_divides": True}


def _job(**facts: Any) -> Any:
    return job(**({"phase": Phase.SERVE, "hardware": "v6e:2x4"} | facts))


def words(of: Layout, **facts: Any) -> list[str]:
    text = emit(of, _job(**facts), "vllm-tpu").text
    lines = [line.removesuffix("\\") for line in text.splitlines() if not line.startswith("#")]
    return shlex.split(" ".join(lines))


def value(found: list[str], flag: str) -> str:
    assert found.count(flag) == 1
    return found[found.index(flag) + 1]


def strategy(found: list[str]) -> dict[str, Any]:
    if "--additional-config" not in found:
        return {}
    config = json.loads(value(found, "--additional-config"))
    strategy: dict[str, Any] = config["sharding"]["sharding_strategy"]
    return strategy


def test_tensor_and_replicas() -> None:
    found = words(layout({"batch_limit": 64}, data=2, tensor=4))
    assert found[:2] == ["vllm", "serve"]
    assert value(found, "--tensor-parallel-size") == "4"
    assert value(found, "--data-parallel-size") == "2"
    assert value(found, "--max-num-seqs") == "64"
    assert strategy(found) == {}


def test_attention_groups_need_the_new_model_design() -> None:
    # tpu_inference/layers/common/sharding.py refuses attn_dp without NEW_MODEL_DESIGN, and counts
    # sequences per attention group: 64 ÷ 4.
    found = words(layout({"attention_data": 4, "batch_limit": 64}, tensor=8))
    assert found[0] == "NEW_MODEL_DESIGN=1"
    assert strategy(found) == {"enable_dp_attention": True, "attn_dp_size": 4}
    assert value(found, "--max-num-seqs") == "16"


@pytest.mark.parametrize(
    ("of", "tensor", "groups"),
    [
        (layout(DIVIDES, tensor=8, expert=8), "8", None),
        (layout(DIVIDES, data=4, tensor=2, expert=8), "8", 4),
        (layout(expert=8), "8", 8),
    ],
)
def test_experts_lie_on_all_ranks(of: Layout, tensor: str, groups: int | None) -> None:
    found = words(of, model=MOE)
    assert "--enable-expert-parallel" in found
    assert value(found, "--tensor-parallel-size") == tensor
    assert strategy(found).get("attn_dp_size") == groups


def test_slices_are_servers() -> None:
    of = layout(data={"dcn": 2}, tensor=8)
    text = emit(of, _job(hardware="2*v6e:2x4"), "vllm-tpu").text
    assert "# Start 2 of these servers" in text
    assert "--data-parallel-size 1" in text


def test_vllm_on_a_tpu_is_this() -> None:
    assert emit(layout(tensor=8), _job(), "vllm").framework == "vllm-tpu"


@pytest.mark.parametrize(
    ("of", "facts", "match"),
    [
        (layout(fsdp=8), {}, "fsdp 8"),
        (layout(expert=4, tensor=2), {"model": MOE}, "expert_divides true"),
        (layout(DIVIDES, tensor=8, expert=2), {"model": MOE}, "expert 1 or 8"),
        (layout({"attention_data": 2}, expert=8), {"model": MOE}, "attention_data 1"),
        (layout(tensor={"ici": 8, "dcn": 2}), {"hardware": "2*v6e:2x4"}, "within a slice"),
        (layout(tensor=8), {"hardware": "h100:1x8"}, "Emit for vllm"),
        (layout(tensor=8), {"phase": Phase.PRETRAIN}, "serves"),
    ],
)
def test_refusals(of: Layout, facts: dict[str, Any], match: str) -> None:
    with pytest.raises(LayoutError, match=match) as caught:
        emit(of, _job(**facts), "vllm-tpu")
    assert caught.value.cure
