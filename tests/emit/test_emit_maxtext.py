"""MaxText's YAML parses, and holds every axis once inside and once across slices."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from emit_build import MOE, job, layout

from prompts_agent.emit.registry import emit
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.workload.workload import Phase

AXES = ("pipeline", "data", "fsdp", "expert", "context", "tensor")


def settings(of: Layout, **facts: Any) -> dict[str, Any]:
    text = emit(of, job(**facts), "maxtext").text
    keys = [line.split(":")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(keys) == len(set(keys))
    loaded = yaml.safe_load(text)
    assert isinstance(loaded, dict)
    return loaded


def test_every_axis_exactly_once() -> None:
    found = settings(
        layout({"zero_stage": 0}, data={"dcn": 2}, fsdp=4, tensor=2), hardware="2*v5e:2x4"
    )
    sizes = {name: value for name, value in found.items() if name.endswith("_parallelism")}
    assert sizes == {
        f"{part}_{axis}_parallelism": {
            ("dcn", "data"): 2,
            ("ici", "fsdp"): 4,
            ("ici", "tensor"): 2,
        }.get((part, axis), 1)
        for part in ("ici", "dcn")
        for axis in AXES
    }


def test_batch_is_per_device() -> None:
    # Global batch 2 × 4 × (fsdp 4) = 32 over 8 devices in 4 passes: one sequence a device.
    found = settings(layout({"microbatch": 2, "gradient_accumulation": 4}, fsdp=4, tensor=2))
    assert found["per_device_batch_size"] == 1
    assert found["gradient_accumulation_steps"] == 4
    assert found["max_target_length"] == 4096


def test_batch_below_one_sequence_a_device_is_a_fraction() -> None:
    # Global batch 1 × 1 × (fsdp 2) = 2 over 8 devices.
    found = settings(layout(fsdp=2, tensor=4))
    assert found["per_device_batch_size"] == 0.25


def test_sequence_parallel_is_the_tensor_sequence_axis() -> None:
    found = settings(layout({"sequence_parallel": True}, fsdp=4, tensor=2))
    assert found["ici_tensor_sequence_parallelism"] == 2
    assert "ici_tensor_parallelism" not in found


def test_pipeline_counts_microbatches_and_layers() -> None:
    # 8 layers over 2 stages × 2 chunks; 4 microbatches are one pass of 1 × 4 × 4 = 16 sequences.
    knobs = {"gradient_accumulation": 4, "schedule": "interleaved", "virtual_stages": 2}
    found = settings(layout(knobs, pipeline=2, fsdp=4))
    assert found["num_pipeline_microbatches"] == 4
    assert found["num_layers_per_pipeline_stage"] == 2
    assert found["gradient_accumulation_steps"] == 1
    assert found["per_device_batch_size"] == 2


def test_zero_shards_the_optimizer_over_data_only_where_there_is_data() -> None:
    assert settings(layout(data=2, tensor=4))["shard_optimizer_over_data"] is True
    assert settings(layout(fsdp=8))["shard_optimizer_over_data"] is False


def test_check_command_compiles_for_the_topology() -> None:
    command = emit(
        layout({"zero_stage": 0}, data={"dcn": 2}, fsdp=8), job(hardware="2*v5e:2x4"), "maxtext"
    )
    assert command.check_command is not None
    assert "train_compile" in command.check_command
    assert "compile_topology=v5e-8 compile_topology_num_slices=2" in command.check_command
    assert "ici_fsdp_parallelism=8" in command.check_command


def test_v5p_is_named_by_cores() -> None:
    # 2x2x2 chips have 16 TensorCores: v5p-16.
    command = emit(layout(fsdp=8), job(hardware="v5p:2x2x2"), "maxtext").check_command
    assert command is not None
    assert "compile_topology=v5p-16 " in command


@pytest.mark.parametrize(
    ("of", "facts", "words"),
    [
        (layout({"remat": Remat.NONE}, fsdp=8), {}, "remat none"),
        (layout(data=2, fsdp=4), {}, "excludes fsdp"),
        (layout({"weights_over_context": False}, context=8), {}, "logical_axis_rules"),
        (layout({"expert_divides": True}, tensor=8, expert=8), {"model": MOE}, "expert 8"),
        (layout({"attention_data": 2}, tensor=8), {}, "attention_data 2"),
        (layout(tensor=8), {"phase": Phase.DECODE}, "MaxText trains"),
    ],
)
def test_refusals(of: Layout, facts: dict[str, Any], words: str) -> None:
    with pytest.raises(LayoutError, match=words) as caught:
        emit(of, job(**facts), "maxtext")
    assert caught.value.cure
