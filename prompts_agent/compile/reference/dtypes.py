"""dtypes: the names that workloads use, as jax knows them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from prompts_agent.errors import WorkloadError

__all__ = ["dtype"]

_NAMES = {
    "fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16",
    "fp8": "float8_e4m3fn", "float8": "float8_e4m3fn", "int8": "int8",
    "int4": "int4", "fp4": "float4_e2m1fn",
}  # fmt: skip


def dtype(name: str) -> np.dtype:
    """The dtype called `name`; raises `WorkloadError` for one that jax lacks."""
    try:
        return jnp.dtype(_NAMES.get(name, name))
    except TypeError as error:
        raise WorkloadError(
            f"dtype {name!r}",
            rule="the reference program computes in dtypes that jax has",
            cure=f"Write one of {', '.join(sorted(_NAMES))}.",
        ) from error
