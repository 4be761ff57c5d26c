"""MaxText: `{ici,dcn}_{axis}_parallelism` and the knobs of `base.yml`.

Names as of maxtext 0.2.5 (`src/maxtext/configs/types.py`). `sequence` is left out of its
`mesh_axes`, so `ici_sequence_parallelism` would do nothing: context is the axis that cuts the
sequence, and `tensor_sequence` the tensor axis that also cuts activations between blocks.
"""

from __future__ import annotations

from prompts_agent.agents.report import Config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import (
    Framework,
    global_batch,
    refuse_all_but_training,
)
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout, PipelineSchedule, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Constraints

__all__ = ["FRAMEWORK"]

AXES = {
    Axis.PIPELINE: "pipeline",
    Axis.DATA: "data",
    Axis.FSDP: "fsdp",
    Axis.EXPERT: "expert",
    Axis.CONTEXT: "context",
    Axis.TENSOR: "tensor",
}
REMAT = {Remat.MINIMAL: "minimal", Remat.FULL: "full", Remat.OFFLOAD: "custom"}
OFFLOADED = ("decoder_layer_input", "query_proj", "key_proj", "value_proj")
"""Tensors that `remat_policy: custom` moves to the host, each by a key of its own."""


def write(layout: Layout, facts: JobFacts) -> Config:
    """YAML for MaxText. Raises `LayoutError` for what it cannot express."""
    _refuse(layout, facts)
    settings = _parallelism(layout) | _knobs(layout, facts)
    lines = [f"{name}: {value}" for name, value in settings.items()]
    return Config(
        framework=FRAMEWORK.name,
        language="yaml",
        text="\n".join([f"# {layout}: {layout.devices} devices.", *lines]) + "\n",
        check_command=_check(facts, settings),
        notes=_notes(layout, facts),
    )


def _refuse(layout: Layout, facts: JobFacts) -> None:
    refuse_all_but_training("MaxText", layout, facts)
    if layout.expert_divides and layout.mesh.size(Axis.EXPERT) > 1:
        raise LayoutError(
            f"expert {layout.mesh.size(Axis.EXPERT)} that divides other axes, for MaxText",
            rule="in MaxText the expert axis is a factor of the mesh",
            cure="Plan with expert_divides false, or emit for megatron.",
        )
    if layout.remat not in REMAT:
        raise LayoutError(
            f"remat {layout.remat} for MaxText",
            rule="its RematPolicy has no value that keeps every activation",
            cure="Plan with `remat: [minimal, full, offload]` in the workload's constraints.",
        )
    if _zero(layout) and layout.mesh.size(Axis.FSDP) > 1:
        raise LayoutError(
            f"data {layout.mesh.size(Axis.DATA)} that shards the optimizer beside fsdp "
            f"{layout.mesh.size(Axis.FSDP)}, for MaxText",
            rule="its shard_optimizer_over_data excludes fsdp, so replicas hold more than planned",
            cure="Plan with `zero_stage: 0` in the workload's constraints, or with --framework.",
        )
    if layout.mesh.size(Axis.CONTEXT) > 1 and not layout.weights_over_context:
        raise LayoutError(
            f"context {layout.mesh.size(Axis.CONTEXT)} with whole weights, for MaxText",
            rule="its default rules shard the embed dim of weights over context too",
            cure="Plan with weights_over_context true, or write your own logical_axis_rules.",
        )


def _parallelism(layout: Layout) -> dict[str, object]:
    """Every axis, also those of size one: the defaults of ici_fsdp and dcn_data are -1."""
    found: dict[str, object] = {}
    for part in ("ici", "dcn"):
        for axis, name in AXES.items():
            sequence = axis is Axis.TENSOR and layout.sequence_parallel
            key = f"{part}_{'tensor_sequence' if sequence else name}_parallelism"
            found[key] = getattr(layout.mesh[axis], part)
    return found


def _knobs(layout: Layout, facts: JobFacts) -> dict[str, object]:
    # MaxText's global batch is per_device_batch_size × devices × gradient_accumulation_steps; with
    # a pipeline, the microbatches in flight are part of one pass.
    stages = layout.mesh.size(Axis.PIPELINE)
    passes = 1 if stages > 1 else layout.gradient_accumulation
    per_device = global_batch(layout) / (layout.devices * passes)
    knobs: dict[str, object] = {
        "per_device_batch_size": int(per_device) if per_device.is_integer() else per_device,
        "gradient_accumulation_steps": passes,
        "max_target_length": facts.sequence,
        "remat_policy": REMAT[layout.remat],
        "shard_optimizer_over_data": str(_zero(layout)).lower(),
    }
    if layout.remat is Remat.OFFLOAD:
        knobs |= dict.fromkeys(OFFLOADED, "offload")
    if stages > 1:
        knobs["num_pipeline_microbatches"] = layout.gradient_accumulation
        if facts.model is not None:
            chunks = stages * layout.virtual_stages
            knobs["num_layers_per_pipeline_stage"] = facts.model.layers // chunks
    return knobs


def _zero(layout: Layout) -> bool:
    return layout.zero_stage > 0 and layout.mesh.size(Axis.DATA) > 1


def _check(facts: JobFacts, settings: dict[str, object]) -> str | None:
    """Ahead-of-time compilation for the topology; needs `jax[tpu]`, no TPU."""
    if facts.topology is None or facts.platform != "tpu":
        return None
    slices = facts.topology.slices
    size = _compile_size(facts.topology.chip, facts.topology.devices_per_slice)
    flags = " ".join(f"{name}={value}" for name, value in settings.items())
    return (
        "python3 -m maxtext.trainers.pre_train.train_compile maxtext/configs/base.yml "
        f"compile_topology={size} compile_topology_num_slices={slices} {flags}"
    )


def _compile_size(chip: str, devices: int) -> str:
    """`v5e-256`. v4 and v5p are named by TensorCores, two a chip: 64 chips are v5p-128."""
    return f"{chip}-{2 * devices if chip in ('v4', 'v5p') else devices}"


def _notes(layout: Layout, facts: JobFacts) -> tuple[str, ...]:
    notes = [f"Written for maxtext {FRAMEWORK.since} or later."]
    stages = layout.mesh.size(Axis.PIPELINE)
    if stages > 1 and facts.model is None:
        notes.append("Set num_layers_per_pipeline_stage: the model's layers are not known here.")
    if stages > 1 and layout.schedule is PipelineSchedule.ONE_F_ONE_B:
        notes.append("MaxText runs its pipeline in circular order; the estimate is for 1F1B.")
    if layout.mesh.size(Axis.CONTEXT) > 1:
        notes.append("Choose context_parallel_strategy: all_gather is the default, ring the other.")
    return tuple(notes)


FRAMEWORK = Framework(
    name="maxtext",
    title="MaxText",
    since="0.2.5",
    source="src/maxtext/configs/types.py and src/maxtext/configs/base.yml",
    write=write,
    constraints=Constraints(remat=tuple(REMAT), zero_stage=0),
)
