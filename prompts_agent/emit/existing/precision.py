"""Which dtypes a config holds its weights in."""

from __future__ import annotations

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.workload.workload import Precision

__all__ = ["precision_of"]


def precision_of(existing: Existing) -> Precision:
    """What the config says of its weights, else the usual.

    A server's checkpoint may be quantised without a word in the config: the name then tells, and
    the least that it can be is taken.
    """
    if existing.training:
        weights = existing.weights or "fp32"
        state = "bf16" if weights == "bf16" else "fp32"
        return Precision(weights=weights, optimizer_state=state)
    kv_cache = str(existing.knobs.get("kv_dtype", "bf16"))
    if existing.weights is not None:
        return Precision(weights=existing.weights, kv_cache=kv_cache)
    name = (existing.model or "").lower()
    four = any(word in name for word in ("fp4", "int4", "4bit", "awq", "gptq", "gpt-oss"))
    eight = any(word in name for word in ("fp8", "int8", "8bit", "w8a8", "deepseek", "kimi"))
    weights = "fp4" if four else "fp8" if eight else "bf16"
    return Precision(weights=weights, kv_cache=kv_cache)
