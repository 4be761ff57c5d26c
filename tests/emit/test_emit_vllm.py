"""vLLM's command parses, and its degrees are the layout's."""

from __future__ import annotations

import argparse
import ast
import shlex
from typing import Any

import pytest
from emit_build import DENSE, MOE, job, layout

from prompts_agent.emit.registry import emit
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.workload.workload import Phase

DIVIDES = {"expert_divides": True}


def arguments(of: Layout, **facts: Any) -> dict[str, Any]:
    config = emit(of, _job(**facts), "vllm")
    command = [line for line in config.text.splitlines() if not line.startswith("#")]
    words = shlex.split(" ".join(line.removesuffix("\\") for line in command))
    assert words[:2] == ["vllm", "serve"]
    options = [word for word in words if word.startswith("--")]
    assert len(options) == len(set(options))
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("model")
    for name in ("tensor", "pipeline", "data"):
        parser.add_argument(f"--{name}-parallel-size", type=int, required=True)
    parser.add_argument("--enable-expert-parallel", action="store_true")
    parser.add_argument("--max-num-seqs", type=int)
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--kv-cache-dtype")
    return vars(parser.parse_args(words[2:]))


def _job(**facts: Any) -> Any:
    return job(**({"phase": Phase.SERVE, "hardware": "h100:1x8"} | facts))


def degrees(found: dict[str, Any]) -> tuple[int, int, int, bool]:
    return (
        found["tensor_parallel_size"],
        found["pipeline_parallel_size"],
        found["data_parallel_size"],
        found["enable_expert_parallel"],
    )


def test_dense_replicas_are_data_ranks() -> None:
    found = arguments(layout({"batch_limit": 128}, data=2, tensor=4))
    assert degrees(found) == (4, 1, 2, False)
    assert found["max_num_seqs"] == 128
    assert found["max_model_len"] == 4096


def test_moe_replicas_are_servers() -> None:
    config = emit(layout(data=2, tensor=4), _job(model=MOE), "vllm")
    assert degrees(arguments(layout(data=2, tensor=4), model=MOE)) == (4, 1, 1, False)
    assert "# Start 2 of these servers" in config.text


def test_experts_on_all_ranks() -> None:
    of = layout(DIVIDES, data=2, tensor=4, expert=8)
    assert degrees(arguments(of, model=MOE)) == (4, 1, 2, True)
    assert degrees(arguments(layout(DIVIDES, tensor=8, expert=8), model=MOE)) == (8, 1, 1, True)


def test_expert_factor_alone_is_data_ranks_that_share_experts() -> None:
    assert degrees(arguments(layout(expert=8), model=MOE)) == (1, 1, 8, True)


def test_attention_data_is_vllms_data_axis() -> None:
    of = layout(DIVIDES | {"attention_data": 4, "batch_limit": 256}, tensor=8, expert=8)
    found = arguments(of, model=MOE)
    assert degrees(found) == (2, 1, 4, True)
    assert found["max_num_seqs"] == 64  # a replica's 256 over 4 data ranks


def test_kv_dtype() -> None:
    assert arguments(layout({"kv_dtype": "fp8"}, tensor=8))["kv_cache_dtype"] == "fp8"
    assert arguments(layout(tensor=8))["kv_cache_dtype"] is None


def test_check_command_is_python() -> None:
    command = emit(layout(data=2, tensor=4), _job(), "vllm").check_command
    assert command is not None
    code = shlex.split(command)[2]
    assert "tensor_parallel_size=4" in code
    ast.parse(code)


def test_hostile_model_name_is_quoted() -> None:
    facts = _job().model_copy(update={"model_name": "x; rm -rf /"})
    text = emit(layout(tensor=8), facts, "vllm").text
    assert "vllm serve 'x; rm -rf /'" in text


@pytest.mark.parametrize(
    ("of", "facts", "words"),
    [
        (layout(fsdp=8), {}, "fsdp 8"),
        (layout(context=8), {}, "context 8"),
        (layout({"kv_dtype": "int8"}, tensor=8), {}, "kv_dtype int8"),
        (layout({"attention_data": 2}, tensor=8), {"model": DENSE}, "dense"),
        (layout(data=2, expert=4), {"model": MOE}, "expert_divides true"),
        (layout(DIVIDES, tensor=8, expert=2), {"model": MOE}, "expert 1, 8 or 8"),
        (layout(data=8), {"phase": Phase.PRETRAIN}, "vLLM serves"),
        (layout(data=8, tensor={"dcn": 2}), {"hardware": "h100:2x8"}, "from the inside"),
    ],
)
def test_refusals(of: Layout, facts: dict[str, Any], words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        emit(of, _job(**facts), "vllm")
