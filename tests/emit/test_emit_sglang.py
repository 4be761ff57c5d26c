"""SGLang's flags parse, and its ranks are the layout's."""

from __future__ import annotations

import argparse
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
    return job(**({"phase": Phase.SERVE, "hardware": "h100:1x8"} | facts))


def arguments(of: Layout, **facts: Any) -> dict[str, Any]:
    text = emit(of, _job(**facts), "sglang").text
    lines = [line.removesuffix("\\") for line in text.splitlines() if not line.startswith("#")]
    words = shlex.split(" ".join(lines))
    assert words[:2] == ["sglang", "serve"]
    # From sglang/srt/arg_groups/fields (0.5.23): names, and integers where it has them.
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("tp", "pp", "dp", "attn-dp", "ep"):
        parser.add_argument(f"--{name}-size", type=int, required=True)
    parser.add_argument("--model-path", required=True)
    parser.add_argument("--context-length", type=int)
    parser.add_argument("--max-running-requests", type=int)
    parser.add_argument("--kv-cache-dtype", choices=["auto", "bf16", "fp8_e5m2", "fp8_e4m3"])
    return vars(parser.parse_args(words[2:]))


def ranks(found: dict[str, Any]) -> tuple[int, ...]:
    return tuple(found[f"{name}_size"] for name in ("tp", "dp", "attn_dp", "ep"))


def test_replicas_and_limits() -> None:
    found = arguments(layout({"batch_limit": 128, "kv_dtype": "fp8"}, data=2, tensor=4))
    assert ranks(found) == (4, 2, 1, 1)
    assert found["max_running_requests"] == 128
    assert found["context_length"] == 4096
    assert found["kv_cache_dtype"] == "fp8_e4m3"


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        # Attention groups of a dense model too: the mlp stays on all ranks.
        (layout({"attention_data": 4}, tensor=8), (8, 1, 4, 1)),
        (layout(DIVIDES | {"attention_data": 8}, tensor=8, expert=8), (8, 1, 8, 8)),
        (layout(DIVIDES, tensor=8, expert=4), (8, 1, 1, 4)),
        # Experts over all of data × tensor: the data ranks are attention groups of one server.
        (layout(DIVIDES, data=4, tensor=2, expert=8), (8, 1, 4, 8)),
        # A factor of the mesh: 4 groups of 2 ranks, each expert cut in 2.
        (layout(expert=4, tensor=2), (8, 1, 4, 4)),
    ],
)
def test_attention_groups_and_experts(of: Layout, expected: tuple[int, ...]) -> None:
    assert ranks(arguments(of, model=MOE)) == expected


def test_a_share_of_the_load_is_the_limit_where_the_layout_has_none() -> None:
    # 384 over data 4 are 96 a replica; 4 replicas in one server that shares its experts.
    of = layout(DIVIDES, data=4, tensor=2, expert=8)
    facts = _job(model=MOE).model_copy(update={"global_batch": 384})
    assert "--max-running-requests 384" in emit(of, facts, "sglang").text
    assert "--max-num-seqs 96" in emit(of, facts, "vllm").text
    tpu = facts.model_copy(update={"topology": None})
    assert "--max-num-seqs 96" in emit(of, tpu, "vllm-tpu").text


def test_replicas_beside_attention_groups_are_servers() -> None:
    of = layout(DIVIDES | {"attention_data": 4}, data=2, tensor=4, expert=4)
    assert ranks(arguments(of, model=MOE)) == (4, 1, 4, 4)
    assert "# Start 2 of these servers" in emit(of, _job(model=MOE), "sglang").text


def test_the_deprecated_spelling_is_named_but_not_written() -> None:
    config = emit(layout({"attention_data": 8}, tensor=8), _job(), "sglang")
    assert "--enable-dp-attention" not in config.text
    assert any("--enable-dp-attention" in note for note in config.notes)


def test_the_checkpoint_has_its_name_on_the_hub() -> None:
    model = MOE.model_copy(update={"source": "https://huggingface.co/owner/Name"})
    assert arguments(layout(tensor=8), model=model)["model_path"] == "owner/Name"


@pytest.mark.parametrize(
    ("of", "facts", "words"),
    [
        (layout(fsdp=8), {}, "fsdp 8"),
        (layout(context=8), {}, "context 8"),
        (layout({"kv_dtype": "int8"}, tensor=8), {}, "kv_dtype int8"),
        (layout(DIVIDES, data=4, tensor=2, expert=6), {"model": MOE}, "whole replicas"),
        (layout(tensor=8), {"phase": Phase.PRETRAIN}, "SGLang serves"),
        (layout(tensor=8), {"hardware": "v6e:2x4"}, "for GPUs"),
        (layout(data=8, tensor={"dcn": 2}), {"hardware": "h100:2x8"}, "from the inside"),
    ],
)
def test_refusals(of: Layout, facts: dict[str, Any], words: str) -> None:
    with pytest.raises(LayoutError, match=words) as caught:
        emit(of, _job(**facts), "sglang")
    assert caught.value.cure
