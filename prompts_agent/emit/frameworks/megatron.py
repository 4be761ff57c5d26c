"""Megatron-LM: command-line flags. Data parallelism is never set: it is world ÷ (TP · PP · CP).

Names as of Megatron-LM d98e8a6 (`megatron/core/model_parallel_config.py`,
`megatron/training/arguments.py`). The fsdp axis is Megatron-FSDP, a data axis inside it HSDP.
"""

from __future__ import annotations

from prompts_agent.agents.report import Config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import (
    Framework,
    global_batch,
    refuse_all_but_training,
    refuse_placement,
)
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout, PipelineSchedule, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.stages import chunk_layers
from prompts_agent.workload.workload import Constraints

__all__ = ["FRAMEWORK"]

FLAGS = {
    Axis.TENSOR: "--tensor-model-parallel-size",
    Axis.PIPELINE: "--pipeline-model-parallel-size",
    Axis.CONTEXT: "--context-parallel-size",
    Axis.EXPERT: "--expert-model-parallel-size",
}
REMAT: dict[Remat, tuple[str, ...]] = {
    Remat.NONE: (),
    Remat.MINIMAL: ("--recompute-granularity selective",),
    Remat.FULL: (
        "--recompute-granularity full",
        "--recompute-method uniform",
        "--recompute-num-layers 1",
    ),
}
RANK_ORDER = (Axis.TENSOR, Axis.CONTEXT, Axis.EXPERT, Axis.FSDP, Axis.DATA, Axis.PIPELINE)
"""Innermost first: `--use-tp-pp-dp-mapping` unset means tp-cp-ep-dp-pp."""


def write(layout: Layout, facts: JobFacts) -> Config:
    """Flags for `pretrain_gpt.py`. Raises `LayoutError` for what Megatron-LM refuses."""
    _refuse(layout, facts)
    flags = [f"{flag} {layout.mesh.size(axis)}" for axis, flag in FLAGS.items()]
    flags += _batch(layout, facts) + _sharding(layout) + list(REMAT[layout.remat])
    flags += _pipeline(layout, facts)
    data = layout.devices // (
        layout.mesh.size(Axis.TENSOR)
        * layout.mesh.size(Axis.PIPELINE)
        * layout.mesh.size(Axis.CONTEXT)
    )
    head = f"# {layout}: {layout.devices} devices, so Megatron-LM derives data parallel {data}."
    text = f"{head}\nLAYOUT_ARGS=(\n" + "\n".join(f"    {flag}" for flag in flags) + "\n)\n"
    return Config(
        framework=FRAMEWORK.name,
        language="bash",
        text=text,
        check_command=_check(layout),
        notes=_notes(layout),
    )


def _refuse(layout: Layout, facts: JobFacts) -> None:
    refuse_all_but_training("Megatron-LM", layout, facts)
    mesh = layout.mesh
    tensor, pipeline, context, fsdp = (
        mesh.size(axis) for axis in (Axis.TENSOR, Axis.PIPELINE, Axis.CONTEXT, Axis.FSDP)
    )
    if layout.sequence_parallel and tensor == 1:
        raise LayoutError(
            "sequence_parallel with tensor 1, for Megatron-LM",
            rule="sequence parallelism runs over the tensor ranks",
            cure="Plan with sequence_parallel false.",
        )
    if mesh.size(Axis.EXPERT) > 1 and tensor > 1 and not layout.sequence_parallel:
        raise LayoutError(
            f"expert {mesh.size(Axis.EXPERT)} with tensor {tensor} and no sequence_parallel",
            rule="Megatron-LM's experts need sequence parallelism where tensor is above 1",
            cure="Plan with sequence_parallel true.",
        )
    if layout.remat not in REMAT:
        raise LayoutError(
            f"remat {layout.remat} for Megatron-LM",
            rule="it has no switch that moves a layer's input, q, k and v to the host",
            cure="Plan with `remat: [none, minimal, full]` in the workload's constraints.",
        )
    if context > 1 and layout.weights_over_context and fsdp == 1:
        raise LayoutError(
            f"context {context} that shards weights, for Megatron-LM without fsdp",
            rule="only Megatron-FSDP shards weights over the context ranks",
            cure="Plan with weights_over_context false, or with fsdp above 1.",
        )
    if context > 1 and not layout.weights_over_context and fsdp > 1:
        raise LayoutError(
            f"fsdp {fsdp} that leaves context {context} out, for Megatron-LM",
            rule="Megatron-FSDP shards over the data and the context ranks together",
            cure="Plan with weights_over_context true.",
        )
    if fsdp > 1 and pipeline > 1:
        raise LayoutError(
            f"fsdp {fsdp} with pipeline {pipeline}, for Megatron-LM",
            rule="with stages, each of a step's microbatches would gather the weights again",
            cure="Plan with data in place of fsdp, or with pipeline 1.",
        )
    refuse_placement("Megatron-LM", layout, RANK_ORDER)


def _batch(layout: Layout, facts: JobFacts) -> list[str]:
    return [
        f"--micro-batch-size {layout.microbatch}",
        f"--global-batch-size {global_batch(layout)}",
        f"--seq-length {facts.sequence}",
    ]


def _sharding(layout: Layout) -> list[str]:
    flags = ["--sequence-parallel"] if layout.sequence_parallel else []
    if layout.mesh.size(Axis.FSDP) > 1:
        flags += [
            "--use-megatron-fsdp",
            "--use-distributed-optimizer",
            "--data-parallel-sharding-strategy optim_grads_params",
            "--no-gradient-accumulation-fusion",
            "--ckpt-format fsdp_dtensor",
        ]
        if layout.mesh.size(Axis.DATA) > 1:
            flags.append(f"--num-distributed-optimizer-instances {layout.mesh.size(Axis.DATA)}")
    elif layout.zero_stage > 0:
        flags += ["--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather"]
    else:
        flags.append("--overlap-grad-reduce")
    return flags


def _pipeline(layout: Layout, facts: JobFacts) -> list[str]:
    uneven = _uneven(layout, facts)
    if uneven is not None:
        return [f"--pipeline-model-parallel-layout '{uneven}'"]
    if layout.schedule is not PipelineSchedule.INTERLEAVED or layout.virtual_stages == 1:
        return []
    if facts.model is None:
        return [f"--num-virtual-stages-per-pipeline-rank {layout.virtual_stages}"]
    chunks = layout.mesh.size(Axis.PIPELINE) * layout.virtual_stages
    return [f"--num-layers-per-virtual-pipeline-stage {facts.model.layers // chunks}"]


def _uneven(layout: Layout, facts: JobFacts) -> str | None:
    """The layers of every chunk, where they do not come out even; the last chunk has fewer, or,
    where that would leave it none, the first and the last have one fewer.

    61 layers over 16 stages: `Etttt|(tttt|)*14tL`, with the embedding first and the loss last. 126
    over 64: `Et|(tt|)*62tL`.
    """
    chunks = layout.mesh.size(Axis.PIPELINE) * layout.virtual_stages
    if facts.model is None or chunks == 1 or facts.model.layers % chunks == 0:
        return None
    first, each, last = chunk_layers(facts.model.layers, chunks)
    between = f"({'t' * each}|)*{chunks - 2}" if chunks > 2 else ""
    return f"E{'t' * first}|{between}{'t' * last}L"


def _check(layout: Layout) -> str:
    """Megatron-LM's own arithmetic of memory; one process, no GPU."""
    return (
        f"WORLD_SIZE={layout.devices} python tools/report_theoretical_memory.py "
        '"${MODEL_ARGS[@]}" "${LAYOUT_ARGS[@]}"'
    )


def _notes(layout: Layout) -> tuple[str, ...]:
    notes = [f"Written for Megatron-LM of {FRAMEWORK.since} or later; start it with torchrun."]
    if layout.mesh.size(Axis.FSDP) > 1:
        notes.append("Megatron-FSDP wants CUDA_DEVICE_MAX_CONNECTIONS unset.")
    elif layout.mesh.size(Axis.TENSOR) > 1 or layout.mesh.size(Axis.CONTEXT) > 1:
        notes.append("Set CUDA_DEVICE_MAX_CONNECTIONS=1, so that communication overlaps.")
    if layout.mesh.size(Axis.EXPERT) > 1 and not layout.expert_divides:
        notes.append("Megatron-LM counts the expert ranks among the data parallel ones.")
    return tuple(notes)


FRAMEWORK = Framework(
    name="megatron",
    title="Megatron-LM",
    since="August 2026",
    source="megatron/core/model_parallel_config.py and megatron/training/arguments.py",
    write=write,
    # Its own way to shard is data with a distributed optimizer; Megatron-FSDP excludes stages.
    constraints=Constraints(
        axes=tuple(axis for axis in Axis if axis is not Axis.FSDP),
        remat=tuple(REMAT),
        expert_divides=True,
        weights_over_context=False,
    ),
)
