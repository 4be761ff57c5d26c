"""SGLang's command or YAML (names as of 0.5.23, and the spelling of attention groups before it)."""

from __future__ import annotations

from typing import Any

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.reader import Reader, Taking
from prompts_agent.emit.existing.serving import quantised
from prompts_agent.emit.existing.settings import Settings
from prompts_agent.layout.mesh import Axis

__all__ = ["READER"]

TENSOR = ("tp_size", "tensor_parallel_size", "tp")
PIPELINE = ("pp_size", "pipeline_parallel_size", "pp")
DATA = ("dp_size", "data_parallel_size", "dp")
EXPERT = ("ep_size", "expert_parallel_size", "ep")
ATTENTION = ("attn_dp_size", "attention_data_parallel_size")
KV_DTYPES = {
    "auto": "bf16",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
}


def read(settings: Settings) -> Existing:
    """Degrees and limits. `tp_size` counts all ranks of a replica, attention groups and all."""
    take = Taking(settings)
    tensor = take.number("tensor", *TENSOR) or 1
    data = take.number("data", *DATA) or 1
    groups = take.number("attention_data", *ATTENTION) or 1
    if take.switch("deprecated", "enable_dp_attention"):
        data, groups = _deprecated(take, data, groups)
    if groups > 1 and data > 1:
        take.fault(
            "attention_data",
            "replicas_and_groups",
            f"dp_size {data} beside attn_dp_size {groups}: SGLang refuses both in one server",
            "Start the replicas as servers of their own.",
        )
    knobs: dict[str, Any] = {"expert_divides": True, "attention_data": groups}
    limit = take.number("batch_limit", "max_running_requests")
    if limit is not None:
        knobs["batch_limit"] = limit
    kv_dtype = take.choice("kv_dtype", KV_DTYPES, "kv_cache_dtype")
    if kv_dtype is not None:
        knobs["kv_dtype"] = kv_dtype
    take.rest(r"^(attn_cp|moe_dp|dcp|dwdp|moe_dense_tp)_size$|^disaggregation_mode$")
    return take.existing(
        framework="sglang",
        training=False,
        ici={
            Axis.TENSOR: tensor,
            Axis.PIPELINE: take.number("pipeline", *PIPELINE) or 1,
            Axis.DATA: data,
            Axis.EXPERT: take.number("expert", *EXPERT) or 1,
        },
        knobs=knobs,
        model=take.text("model", "model_path", "model"),
        global_batch=limit * data if limit is not None else None,
        sequence=take.number("sequence", "context_length"),
        weights=quantised(take),
        hosts=take.number("hosts", "nnodes"),
    )


def _deprecated(take: Taking, data: int, groups: int) -> tuple[int, int]:
    """`--dp-size N --enable-dp-attention` meant N attention groups and one replica."""
    take.fault(
        "deprecated",
        "deprecated",
        f"enable_dp_attention with dp_size {data} means attn_dp_size {data}, and goes away after "
        "2026",
        f"Write --attn-dp-size {data} instead of both.",
        note=True,
    )
    if groups > 1:
        return data, groups
    take.lines["attention_data"] = take.lines.get("data", 0)
    return 1, data


READER = Reader(
    name="sglang",
    words=r"\bsglang\b",
    keys=frozenset(
        ("tp_size", "dp_size", "ep_size", "attn_dp_size", "context_length", "model_path")
    ),
    read=read,
)
