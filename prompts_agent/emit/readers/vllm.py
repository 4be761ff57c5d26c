"""vLLM's command or YAML, and tpu-inference's sharding strategy within it."""

from __future__ import annotations

import itertools
import json
from typing import Any

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.reader import Reader, Taking
from prompts_agent.emit.existing.serving import quantised
from prompts_agent.emit.existing.settings import Settings
from prompts_agent.layout.mesh import Axis

__all__ = ["READER"]

TENSOR = ("tensor_parallel_size", "tp")
PIPELINE = ("pipeline_parallel_size", "pp")
DATA = ("data_parallel_size", "dp")
KV_DTYPES = {
    "auto": "bf16",
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
}


def read(settings: Settings) -> Existing:
    """Degrees and limits. With expert parallelism the experts lie on all tensor × data ranks."""
    take = Taking(settings)
    tensor = take.number("tensor", *TENSOR) or 1
    data = take.number("data", *DATA) or 1
    experts = bool(take.switch("expert", "enable_expert_parallel", "ep"))
    groups = _attention_groups(take)
    knobs: dict[str, Any] = {"expert_divides": True, "attention_data": groups}
    limit = take.number("batch_limit", "max_num_seqs")
    if limit is not None:
        knobs["batch_limit"] = limit * groups
    kv_dtype = take.choice("kv_dtype", KV_DTYPES, "kv_cache_dtype")
    if kv_dtype is not None:
        knobs["kv_dtype"] = kv_dtype
    take.rest(r"context_parallel_size$|^decode_context|^prefill_context|^all2all_backend$")
    return take.existing(
        framework="vllm",
        training=False,
        ici={
            Axis.TENSOR: tensor,
            Axis.PIPELINE: take.number("pipeline", *PIPELINE) or 1,
            Axis.DATA: data,
            Axis.EXPERT: tensor * data if experts else 1,
        },
        knobs=knobs,
        model=_model(take),
        global_batch=limit * data * groups if limit is not None else None,
        sequence=take.number("sequence", "max_model_len"),
        weights=quantised(take),
        hosts=take.number("hosts", "nnodes"),
    )


def _attention_groups(take: Taking) -> int:
    """`attn_dp_size` of tpu-inference; without a size it follows from the model's KV heads."""
    nested = take.number("attention_data", "attn_dp_size")
    entry = take.entry("attention_data", "additional_config")
    if entry is None or not isinstance(entry.value, str):
        return nested or 1
    try:
        strategy = json.loads(entry.value)["sharding"]["sharding_strategy"]
        groups = strategy.get("attn_dp_size", 1) if strategy.get("enable_dp_attention") else 1
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        take.not_understood(entry, "no sharding strategy in it")
        return 1
    if isinstance(groups, int) and not isinstance(groups, bool) and groups > 0:
        return groups
    take.not_understood(entry, "attn_dp_size is no number above 0")
    return 1


def _model(take: Taking) -> str | None:
    """`--model X`, or the word after `vllm serve`."""
    named = take.text("model", "model")
    words = take.settings.words
    for (before, _), (word, line) in itertools.pairwise(words):
        if named is None and before == "serve":
            take.lines["model"] = line
            return word
    return named


READER = Reader(
    name="vllm",
    words=r"\bvllm\b",
    keys=frozenset(
        ("max_num_seqs", "max_model_len", "enable_expert_parallel", "max_num_batched_tokens")
    ),
    read=read,
)
