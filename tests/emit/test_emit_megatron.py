"""Megatron-LM's flags parse, and name every degree that it takes exactly once."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

import pytest
from emit_build import DENSE, MOE, job, layout

from prompts_agent.emit.registry import emit
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.workload.workload import Phase

GPUS = "h100:1x8"
NUMBERS = (
    "--tensor-model-parallel-size",
    "--pipeline-model-parallel-size",
    "--context-parallel-size",
    "--expert-model-parallel-size",
    "--micro-batch-size",
    "--global-batch-size",
    "--seq-length",
    "--num-distributed-optimizer-instances",
    "--recompute-num-layers",
    "--num-layers-per-virtual-pipeline-stage",
    "--num-virtual-stages-per-pipeline-rank",
)
WORDS = (
    "--recompute-granularity",
    "--recompute-method",
    "--data-parallel-sharding-strategy",
    "--ckpt-format",
)
SWITCHES = (
    "--sequence-parallel",
    "--use-distributed-optimizer",
    "--use-megatron-fsdp",
    "--overlap-grad-reduce",
    "--overlap-param-gather",
    "--no-gradient-accumulation-fusion",
)


class Once(argparse.Action):
    """Refuses a flag that comes twice."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        assert getattr(namespace, self.dest) is None, f"{option} twice"
        setattr(namespace, self.dest, values if values != [] else True)


def flags(of: Layout, **facts: Any) -> dict[str, Any]:
    text = emit(of, job(**({"hardware": GPUS} | facts)), "megatron").text
    body = text.split("LAYOUT_ARGS=(", 1)[1].rsplit(")", 1)[0]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in NUMBERS:
        parser.add_argument(name, type=int, action=Once)
    for name in WORDS:
        parser.add_argument(name, action=Once)
    for name in SWITCHES:
        parser.add_argument(name, nargs=0, action=Once)
    found = vars(parser.parse_args(shlex.split(body)))
    return {name: value for name, value in found.items() if value is not None}


def test_degrees_and_batch() -> None:
    knobs = {"microbatch": 2, "gradient_accumulation": 4, "weights_over_context": False}
    of = layout(knobs, data=2, context=2, tensor=2)
    found = flags(of)
    assert found["tensor_model_parallel_size"] == 2
    assert found["pipeline_model_parallel_size"] == 1
    assert found["context_parallel_size"] == 2
    assert found["expert_model_parallel_size"] == 1
    assert found["micro_batch_size"] == 2
    assert found["global_batch_size"] == 16  # 2 × 4 × data 2
    assert found["use_distributed_optimizer"] is True
    text = emit(of, job(hardware=GPUS), "megatron").text
    assert "data parallel 2" in text  # 8 ÷ (2 · 1 · 2), never a flag


def test_fsdp_is_megatron_fsdp_and_data_makes_it_hsdp() -> None:
    found = flags(layout(data=2, fsdp=4))
    assert found["data_parallel_sharding_strategy"] == "optim_grads_params"
    assert found["num_distributed_optimizer_instances"] == 2
    assert "num_distributed_optimizer_instances" not in flags(layout(fsdp=8))


def test_expert_axis_divides_the_other_ranks() -> None:
    knobs = {"expert_divides": True, "sequence_parallel": True}
    of = layout(knobs, data=4, tensor=2, expert=4)
    found = flags(of, model=MOE)
    assert found["expert_model_parallel_size"] == 4
    assert found["sequence_parallel"] is True
    assert "data parallel 4" in emit(of, job(hardware=GPUS, model=MOE), "megatron").text


@pytest.mark.parametrize(
    ("remat", "granularity"),
    [(Remat.NONE, None), (Remat.MINIMAL, "selective"), (Remat.FULL, "full")],
)
def test_recompute(remat: Remat, granularity: str | None) -> None:
    assert flags(layout({"remat": remat}, data=8)).get("recompute_granularity") == granularity


def test_interleaved_pipeline_counts_layers_a_chunk() -> None:
    knobs = {"gradient_accumulation": 4, "schedule": "interleaved", "virtual_stages": 2}
    # 8 layers ÷ (2 stages × 2 chunks)
    assert flags(layout(knobs, pipeline=2, data=4))["num_layers_per_virtual_pipeline_stage"] == 2


def test_uneven_stages_are_written_out() -> None:
    # 7 layers over 4 stages: 2, 2, 2 and 1.
    model = DENSE.model_copy(update={"layers": 7})
    of = layout({"gradient_accumulation": 4}, pipeline=4, data=2)
    text = emit(of, job(model=model, hardware="h100:1x8"), "megatron").text
    assert "--pipeline-model-parallel-layout 'Ett|(tt|)*2tL'" in text


@pytest.mark.parametrize(
    ("layers", "pipeline", "chunks", "written"),
    [
        # 6 layers, the embedding and the loss are 8 ÷ 4.
        (6, 2, 2, "Et|(tt|)*2tL"),
        (6, 4, 2, "E|(t|)*6L"),
    ],
)
def test_the_embedding_and_the_loss_count_as_layers(
    layers: int, pipeline: int, chunks: int, written: str
) -> None:
    model = DENSE.model_copy(update={"layers": layers})
    knobs = {"gradient_accumulation": 4, "schedule": "interleaved", "virtual_stages": chunks}
    of = layout(knobs, pipeline=pipeline, data=8 // pipeline)
    text = emit(of, job(model=model, hardware="h100:1x8"), "megatron").text
    assert f"--pipeline-model-parallel-layout '{written}'" in text


def test_ranks_fill_nodes_from_the_inside() -> None:
    fine = layout(data={"ici": 2, "dcn": 2}, tensor=4)
    assert flags(fine, hardware="h100:2x8")["tensor_model_parallel_size"] == 4
    crossed = layout(data=8, tensor={"dcn": 2})
    with pytest.raises(LayoutError, match="numbers its ranks from the inside"):
        emit(crossed, job(hardware="h100:2x8"), "megatron")


@pytest.mark.parametrize(
    ("of", "facts", "words"),
    [
        (layout({"sequence_parallel": True}, data=8), {}, "tensor 1"),
        (layout({"expert_divides": True}, data=4, tensor=2, expert=4), {"model": MOE}, "experts"),
        (layout(context=2, data=4), {}, "weights_over_context false"),
        (layout({"weights_over_context": False}, context=2, fsdp=4), {}, "together"),
        (layout(pipeline=2, fsdp=4), {}, "pipeline 2"),
        (layout({"attention_data": 2}, tensor=8), {}, "attention_data 2"),
        (layout(tensor=8), {"phase": Phase.SERVE}, "Megatron-LM trains"),
    ],
)
def test_refusals(of: Layout, facts: dict[str, Any], words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        emit(of, job(**({"hardware": GPUS} | facts)), "megatron")
