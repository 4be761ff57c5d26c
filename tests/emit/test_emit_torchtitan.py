"""torchtitan's function is Python, and sets the degrees that its mesh multiplies to all ranks."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from emit_build import DENSE, MOE, job, layout

from prompts_agent.emit.registry import emit
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.workload.workload import Phase

DIVIDES = {"expert_divides": True}


def _job(**facts: Any) -> Any:
    return job(**({"hardware": "h100:1x8"} | facts))


def settings(of: Layout, **facts: Any) -> dict[str, Any]:
    """`config.parallelism.x = 2` → x: 2; an activation checkpoint is its class's name."""
    tree = ast.parse(emit(of, _job(**facts), "torchtitan").text)
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    found: dict[str, Any] = {"name": function.name}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            name = node.targets[0].attr
            assert name not in found
            literal = isinstance(node.value, ast.Constant)
            found[name] = ast.literal_eval(node.value) if literal else ast.unparse(node.value)
    return found


def test_mesh_is_all_ranks() -> None:
    found = settings(layout({"sequence_parallel": True}, fsdp=2, context=2, tensor=2))
    degrees = {name: value for name, value in found.items() if name.endswith("_degree")}
    assert degrees == {
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": 2,
        "context_parallel_degree": 2,
        "tensor_parallel_degree": 2,
        "expert_parallel_degree": 1,
        "pipeline_parallel_degree": 1,
    }
    assert found["enable_sequence_parallel"] is True
    assert found["name"] == "tiny_fsdp2_cp2_tp2"


def test_batch_without_a_pipeline_is_a_microbatch_a_pass() -> None:
    found = settings(layout({"microbatch": 2, "gradient_accumulation": 4}, fsdp=8))
    # 2 × 4 × 8; torchtitan divides by local × data parallel for its accumulation steps: 4.
    assert (found["local_batch_size"], found["global_batch_size"]) == (2, 64)
    assert found["seq_len"] == 4096


def test_batch_of_a_pipeline_holds_all_its_microbatches() -> None:
    knobs = {"gradient_accumulation": 4, "schedule": "interleaved", "virtual_stages": 2}
    found = settings(layout(knobs, pipeline=2, fsdp=4))
    assert (found["local_batch_size"], found["global_batch_size"]) == (4, 16)
    assert found["pipeline_parallel_microbatch_size"] == 1
    assert found["pipeline_parallel_schedule"] == "Interleaved1F1B"
    # 8 layers in 2 stages × 2 chunks, embedding and output not counted.
    assert found["pipeline_parallel_layers_per_stage"] == 2
    assert found["pipeline_parallel_first_stage_less_layers"] == 0


def test_the_embedding_and_the_output_count_as_layers_where_a_chunk_would_be_empty() -> None:
    knobs = {"gradient_accumulation": 4, "schedule": "interleaved", "virtual_stages": 2}
    model = DENSE.model_copy(update={"layers": 6})
    found = settings(layout(knobs, pipeline=2, fsdp=4), model=model)
    # (6 + 1 + 1) ÷ 2 layers a chunk = 4 chunks; without the two there would be 3.
    assert found["pipeline_parallel_layers_per_stage"] == 2
    assert found["pipeline_parallel_first_stage_less_layers"] == 1
    assert found["pipeline_parallel_last_stage_less_layers"] == 1


def test_hsdp_needs_a_whole_optimizer_on_each_replica() -> None:
    found = settings(layout({"zero_stage": 0}, data=2, fsdp=4))
    assert found["data_parallel_replicate_degree"] == 2


@pytest.mark.parametrize(
    ("of", "shard", "expert"),
    [
        (layout(DIVIDES, fsdp=4, tensor=2, expert=8), 4, 8),
        # A factor of the mesh shards dense weights as fsdp does.
        (layout(fsdp=2, expert=4), 8, 4),
    ],
)
def test_experts(of: Layout, shard: int, expert: int) -> None:
    found = settings(of, model=MOE)
    assert found["data_parallel_shard_degree"] == shard
    assert found["expert_parallel_degree"] == expert


@pytest.mark.parametrize(
    ("remat", "written"),
    [
        (Remat.NONE, None),
        (Remat.MINIMAL, "SelectiveAC.Config()"),
        (Remat.FULL, "FullAC.Config()"),
    ],
)
def test_activation_checkpoint(remat: Remat, written: str | None) -> None:
    assert settings(layout({"remat": remat}, fsdp=8))["activation_checkpoint"] == written


def test_a_known_model_starts_from_torchtitans_own() -> None:
    facts = _job().model_copy(update={"model_name": "llama3.1-70b"})
    config = emit(layout(fsdp=8), facts, "torchtitan")
    assert "from torchtitan.models.llama3.config_registry import llama3_70b" in config.text
    assert "def llama3_1_70b_fsdp8()" in config.text
    assert config.check_command is not None
    assert "NGPU=8 " in config.check_command
    assert any("your own" in note for note in emit(layout(fsdp=8), _job(), "torchtitan").notes)


@pytest.mark.parametrize("name", ["7b; import os", "модель", "", "class"])
def test_any_model_name_makes_a_function(name: str) -> None:
    facts = _job().model_copy(update={"model_name": name})
    ast.parse(emit(layout(fsdp=8), facts, "torchtitan").text)


@pytest.mark.parametrize(
    ("of", "facts", "words"),
    [
        (layout(data=2, fsdp=4), {}, "whole optimizer state"),
        (layout({"remat": Remat.OFFLOAD}, fsdp=8), {}, "remat offload"),
        (layout({"weights_over_context": False}, context=8), {}, "weights_over_context true"),
        (layout(fsdp=2, tensor=2, expert=2), {"model": MOE}, "expert_divides true"),
        (
            layout(DIVIDES | {"zero_stage": 0}, data=2, fsdp=4, expert=8),
            {"model": MOE},
            "divisors of 4",
        ),
        (layout({"attention_data": 2}, tensor=8), {}, "attention_data 2"),
        (layout(fsdp=8), {"phase": Phase.SERVE}, "torchtitan trains"),
        (layout(fsdp=8, tensor={"dcn": 2}), {"hardware": "h100:2x8"}, "from the inside"),
    ],
)
def test_refusals(of: Layout, facts: dict[str, Any], words: str) -> None:
    with pytest.raises(LayoutError, match=words) as caught:
        emit(of, _job(**facts), "torchtitan")
    assert caught.value.cure
