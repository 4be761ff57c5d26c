"""torchtitan: a function that returns a `Trainer.Config`, which is what it is configured with.

Names as of torchtitan 0.3.0 (`torchtitan/config/configs.py`). `fsdp` is its shard degree and `data`
its replicate degree; context ranks always shard weights with fsdp; experts take their ranks from
fsdp × context × tensor, the innermost first, and are cut by none of them.
"""

from __future__ import annotations

import re

from prompts_agent.agents.report import Config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import (
    Framework,
    global_batch,
    refuse_all_but_training,
    refuse_placement,
)
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.stages import chunk_layers
from prompts_agent.workload.workload import Constraints

__all__ = ["FRAMEWORK"]

REMAT = {Remat.NONE: "None", Remat.MINIMAL: "SelectiveAC.Config()", Remat.FULL: "FullAC.Config()"}
RANK_ORDER = (Axis.TENSOR, Axis.CONTEXT, Axis.EXPERT, Axis.FSDP, Axis.DATA, Axis.PIPELINE)
"""Innermost first: its mesh is pp, dp_replicate, dp_shard, cp, tp."""

# Our model → (module of torchtitan.models, function of its config_registry).
BASES = {
    "llama3-8b": ("llama3", "llama3_8b"),
    "llama3.1-8b": ("llama3", "llama3_8b"),
    "llama3-70b": ("llama3", "llama3_70b"),
    "llama3.1-70b": ("llama3", "llama3_70b"),
    "llama3.1-405b": ("llama3", "llama3_405b"),
    "qwen3-0.6b": ("qwen3", "qwen3_0_6b"),
    "qwen3-1.7b": ("qwen3", "qwen3_1_7b"),
    "qwen3-14b": ("qwen3", "qwen3_14b"),
    "qwen3-32b": ("qwen3", "qwen3_32b"),
    "qwen3-30b-a3b": ("qwen3", "qwen3_30b_a3b"),
    "deepseek3-671b": ("deepseek_v3", "deepseek_v3_671b"),
    "gpt-oss-20b": ("gpt_oss", "gpt_oss_20b"),
    "gpt-oss-120b": ("gpt_oss", "gpt_oss_120b"),
    "moonlight-16b-a3b": ("kimi_k2_7", "moonlight_16b_a3b"),
}
_SHORT = {
    Axis.PIPELINE: "pp",
    Axis.DATA: "dp",
    Axis.FSDP: "fsdp",
    Axis.EXPERT: "ep",
    Axis.CONTEXT: "cp",
    Axis.TENSOR: "tp",
}


def write(layout: Layout, facts: JobFacts) -> Config:
    """Python for a recipe module. Raises `LayoutError` for what torchtitan cannot express."""
    _refuse(layout, facts)
    base = BASES.get(facts.model_name)
    module, function = base or ("llama3", "llama3_debugmodel")
    remat = REMAT[layout.remat]
    policy = remat.partition(".")[0]
    imports = [
        f"from torchtitan.models.{module}.config_registry import {function}",
        "from torchtitan.trainer import Trainer",
    ]
    if layout.remat is not Remat.NONE:
        imports.insert(0, f"from torchtitan.distributed.activation_checkpoint import {policy}")
    settings = _parallelism(layout, facts) | _training(layout, facts)
    name = _name(layout, facts)
    body = [f"    config = {function}()" + ("" if base else "  # put your own model's here")]
    body += [f"    config.{key} = {value!r}" for key, value in settings.items()]
    body += [f"    config.activation_checkpoint = {remat}", "    return config"]
    head = f"# {layout}: {layout.devices} devices."
    text = "\n".join([head, *imports, "", "", f"def {name}() -> Trainer.Config:", *body]) + "\n"
    return Config(
        framework=FRAMEWORK.name,
        language="python",
        text=text,
        check_command=_check(layout, name),
        notes=_notes(layout, known=base is not None),
    )


def _refuse(layout: Layout, facts: JobFacts) -> None:
    refuse_all_but_training("torchtitan", layout, facts)
    mesh = layout.mesh
    if layout.remat not in REMAT:
        raise LayoutError(
            f"remat {layout.remat} for torchtitan",
            rule="it has no switch that moves a layer's input, q, k and v to the host",
            cure="Plan with `remat: [none, minimal, full]` in the workload's constraints.",
        )
    if mesh.size(Axis.CONTEXT) > 1 and not layout.weights_over_context:
        raise LayoutError(
            f"context {mesh.size(Axis.CONTEXT)} with whole weights, for torchtitan",
            rule="its context ranks shard the weights as fsdp ranks do",
            cure="Plan with weights_over_context true.",
        )
    if mesh.size(Axis.DATA) > 1 and layout.zero_stage > 0:
        raise LayoutError(
            f"data {mesh.size(Axis.DATA)} that shards the optimizer, for torchtitan",
            rule="its replicas hold the whole optimizer state, which may not fit",
            cure="Plan with `zero_stage: 0` in the workload's constraints, or with --framework.",
        )
    _refuse_experts(layout)
    refuse_placement("torchtitan", layout, RANK_ORDER)


def _refuse_experts(layout: Layout) -> None:
    expert, tensor = layout.mesh.size(Axis.EXPERT), layout.mesh.size(Axis.TENSOR)
    if expert == 1:
        return
    if not layout.expert_divides and tensor > 1:
        raise LayoutError(
            f"expert {expert} beside tensor {tensor} that cuts experts too, for torchtitan",
            rule="its expert ranks include the tensor ranks, and no tensor rank cuts an expert",
            cure="Plan with expert_divides true, or with tensor 1.",
        )
    ranks = _shard(layout) * layout.mesh.size(Axis.CONTEXT) * tensor
    if ranks % expert:
        raise LayoutError(
            f"expert {expert} over fsdp × context × tensor = {ranks}, for torchtitan",
            rule="expert ranks are taken from those, and data replicas hold all experts",
            cure=f"Plan with expert among the divisors of {ranks}.",
        )


def _shard(layout: Layout) -> int:
    """data_parallel_shard_degree: an expert axis that is a factor shards dense weights too."""
    factor = 1 if layout.expert_divides else layout.mesh.size(Axis.EXPERT)
    return layout.mesh.size(Axis.FSDP) * factor


def _parallelism(layout: Layout, facts: JobFacts) -> dict[str, object]:
    mesh = layout.mesh
    found: dict[str, object] = {
        "data_parallel_replicate_degree": mesh.size(Axis.DATA),
        "data_parallel_shard_degree": _shard(layout),
        "context_parallel_degree": mesh.size(Axis.CONTEXT),
        "tensor_parallel_degree": mesh.size(Axis.TENSOR),
        "enable_sequence_parallel": layout.sequence_parallel,
        "expert_parallel_degree": mesh.size(Axis.EXPERT),
        "pipeline_parallel_degree": mesh.size(Axis.PIPELINE),
    }
    if mesh.size(Axis.PIPELINE) > 1:
        looped = layout.virtual_stages > 1
        found["pipeline_parallel_schedule"] = "Interleaved1F1B" if looped else "1F1B"
        found["pipeline_parallel_microbatch_size"] = layout.microbatch
        if facts.model is not None:
            chunks = mesh.size(Axis.PIPELINE) * layout.virtual_stages
            first, each, _ = chunk_layers(facts.model.layers, chunks)
            found["pipeline_parallel_layers_per_stage"] = each
            # Embedding and output count as a layer each unless told otherwise.
            found["pipeline_parallel_first_stage_less_layers"] = each - first
            found["pipeline_parallel_last_stage_less_layers"] = each - first
    return {f"parallelism.{name}": value for name, value in found.items()}


def _training(layout: Layout, facts: JobFacts) -> dict[str, object]:
    """A pipeline's microbatches are cut from the local batch; else each one is a pass."""
    piped = layout.mesh.size(Axis.PIPELINE) > 1
    local = layout.microbatch * (layout.gradient_accumulation if piped else 1)
    return {
        "training.local_batch_size": local,
        "training.global_batch_size": global_batch(layout),
        "training.seq_len": facts.sequence,
    }


def _name(layout: Layout, facts: JobFacts) -> str:
    """`llama3_1_70b_fsdp16_tp8`, as torchtitan names its own."""
    degrees: dict[Axis, int] = {a: n for a, n in layout.mesh.used().items() if a is not Axis.FSDP}
    if _shard(layout) > 1:
        degrees[Axis.FSDP] = _shard(layout)
    parts = [f"{_SHORT[a]}{degrees[a]}" for a in Axis if a in degrees]
    model = re.sub(r"\W+", "_", facts.model_name, flags=re.ASCII).strip("_").lower()
    name = "_".join([model or "model", *parts])
    return name if name[0].isalpha() else f"model_{name}"


def _check(layout: Layout, name: str) -> str:
    """Its dry run: process groups that move nothing. One process in place of all ranks."""
    return (
        f"NGPU={layout.devices} LOCAL_RANK=0 python -m torchtitan.train --module layout "
        f"--config {name} --comm.mode fake_backend --training.steps 1"
    )


def _notes(layout: Layout, *, known: bool) -> tuple[str, ...]:
    notes = [
        f"Written for torchtitan {FRAMEWORK.since}: save it as layout.py where Python finds it, "
        f"and start {layout.devices} ranks with --module layout --config.",
        "The check is a dry run of one rank; it needs one GPU.",
        "Versions after 0.3 count the batch in tokens (num_tokens_per_microbatch_per_dp_rank).",
    ]
    if not known:
        notes.append("torchtitan ships no config of this model: start from your own.")
    return tuple(notes)


FRAMEWORK = Framework(
    name="torchtitan",
    title="torchtitan",
    since="0.3.0",
    source="torchtitan/config/configs.py",
    write=write,
    constraints=Constraints(
        remat=tuple(REMAT),
        zero_stage=0,
        expert_divides=True,
        weights_over_context=True,
    ),
)
