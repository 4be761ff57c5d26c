"""Megatron-LM's flags in a script, its YAML, and Megatron-Bridge's Python: one set of names.

Data parallelism is never written: it is what tensor × pipeline × context leave of all ranks.
"""

from __future__ import annotations

from typing import Any

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.reader import Reader, Taking
from prompts_agent.emit.existing.settings import Settings
from prompts_agent.layout.mesh import Axis

__all__ = ["READER"]

TENSOR = ("tensor_model_parallel_size", "tp_size")
PIPELINE = ("pipeline_model_parallel_size",)
CONTEXT = ("context_parallel_size",)
EXPERT = ("expert_model_parallel_size",)
GRANULARITY = {"selective": "minimal", "full": "full"}


def read(settings: Settings) -> Existing:
    """Degrees, the batch, recomputation and how the optimizer is sharded."""
    take = Taking(settings)
    degrees = {
        axis: take.number(axis.value, *keys) or 1
        for axis, keys in (
            (Axis.TENSOR, TENSOR[:1]),
            (Axis.PIPELINE, PIPELINE),
            (Axis.CONTEXT, CONTEXT),
            (Axis.EXPERT, EXPERT),
        )
    }
    fsdp = _is_fsdp(take)
    instances = take.number("data", "num_distributed_optimizer_instances") or 1
    degrees[Axis.FSDP], degrees[Axis.DATA] = (-1, instances) if fsdp else (1, -1)
    knobs = _knobs(take, fsdp=fsdp)
    nodes = take.number("hosts", "nnodes", "num_nodes")
    per_node = take.number("devices", "nproc_per_node", "gpus_per_node")
    _sequence_parallel(take, degrees, knobs)
    take.rest(
        r"parallel_size$|^pipeline_model_parallel_layout$|_pipeline_num_layers$|^hybrid_context|"
        r"^recompute_modules$|^cpu_offloading"
    )
    return take.existing(
        framework="megatron",
        training=True,
        ici=degrees,
        knobs=knobs,
        global_batch=take.number("batch", "global_batch_size"),
        sequence=take.number("sequence", "seq_length"),
        layers_per_chunk=take.number("virtual_stages", "num_layers_per_virtual_pipeline_stage"),
        dims=_dims(take),
        devices=nodes * per_node if nodes and per_node else None,
        hosts=nodes,
    )


def _dims(take: Taking) -> dict[str, Any] | None:
    """The model from its flags; None where one of them is missing. Megatron-LM's own defaults."""
    layers, embed, heads, vocab = (
        take.number(name, name)
        for name in ("num_layers", "hidden_size", "num_attention_heads", "vocab_size")
    )
    if layers is None or embed is None or heads is None or vocab is None:
        return None
    gated = bool(take.switch("swiglu", "swiglu"))
    mlp = take.number("mlp", "ffn_hidden_size") or _default_mlp(embed, gated=gated)
    found: dict[str, Any] = {
        "layers": layers,
        "embed": embed,
        "heads": heads,
        "kv_heads": take.number("kv_heads", "num_query_groups") or heads,
        "head_dim": take.number("head_dim", "kv_channels") or embed // heads,
        "mlp": mlp,
        "gated_mlp": gated,
        "vocab": vocab,
        "tied_embeddings": not take.switch("tied", "untie_embeddings_and_output_weights"),
    }
    experts = take.number("experts", "num_experts")
    if experts is not None and experts > 1:
        found["moe"] = {
            "experts": experts,
            "experts_per_token": take.number("topk", "moe_router_topk") or 2,
            "mlp": take.number("moe_mlp", "moe_ffn_hidden_size") or mlp,
        }
    return found


def _default_mlp(embed: int, *, gated: bool) -> int:
    """`megatron/training/arguments.py`: two thirds of 4 × hidden in multiples of 64, if gated."""
    return int(4 * embed * 2 / 3 / 64) * 64 if gated else 4 * embed


def _is_fsdp(take: Taking) -> bool:
    used = take.switch("fsdp", "use_megatron_fsdp", "use_torch_fsdp2")
    strategy = take.text("fsdp_strategy", "data_parallel_sharding_strategy")
    return bool(used) and strategy in (None, "optim_grads_params")


def _knobs(take: Taking, *, fsdp: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"expert_divides": True, "weights_over_context": fsdp}
    microbatch = take.number("microbatch", "micro_batch_size")
    if microbatch is not None:
        found["microbatch"] = microbatch
    found["remat"] = take.choice("remat", GRANULARITY, "recompute_granularity") or "none"
    take.choice("remat_method", {"uniform": "uniform"}, "recompute_method")
    if take.switch("remat", "recompute_activations"):
        found["remat"] = "minimal"
    found["sequence_parallel"] = bool(take.switch("sequence_parallel", "sequence_parallel"))
    distributed = take.switch("zero_stage", "use_distributed_optimizer")
    found["zero_stage"] = int(bool(distributed) or fsdp)
    virtual = take.number(
        "virtual_stages",
        "num_virtual_stages_per_pipeline_rank",
        "virtual_pipeline_model_parallel_size",
    )
    if virtual is not None and virtual > 1:
        found["virtual_stages"] = virtual
    return found


def _sequence_parallel(take: Taking, degrees: dict[Axis, int], knobs: dict[str, Any]) -> None:
    """Megatron-LM turns it off where tensor is 1, and asks for it where experts meet tensor."""
    if degrees[Axis.TENSOR] == 1:
        knobs["sequence_parallel"] = False
    elif degrees[Axis.EXPERT] > 1 and not knobs["sequence_parallel"]:
        take.fault(
            "expert",
            "sequence_parallel",
            f"expert_model_parallel_size {degrees[Axis.EXPERT]} with tensor_model_parallel_size "
            f"{degrees[Axis.TENSOR]} and no sequence_parallel: Megatron-LM's experts need it",
            "Add --sequence-parallel.",
        )


READER = Reader(
    name="megatron",
    words=r"pretrain_\w+\.py|(?i:\bmegatron\b)",
    keys=frozenset((*TENSOR[:1], *PIPELINE, *EXPERT, "micro_batch_size", "recompute_granularity")),
    read=read,
)
