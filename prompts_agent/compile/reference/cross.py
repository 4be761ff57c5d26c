"""Cross: a decoder's attention to what an encoder made of its input."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from prompts_agent.compile.reference.block import Tree, output, scale_of
from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.untyped import named

__all__ = ["CROSS", "cross_keys_values", "cross_queries", "from_cache"]

CROSS = ("cross_k", "cross_v")
"""What the cache of a decoder layer has besides its own keys and values."""


def cross_queries(frame: Frame, weight: Tree, x: jax.Array) -> jax.Array:
    """Of a decoder's x [b, s, embed], [b, s, heads, d]."""
    q = jnp.einsum("bsd,dhk->bshk", x, weight["q"].astype(frame.compute))
    return named(frame.hold(q, "activations.heads"), "q")


def cross_keys_values(frame: Frame, weight: Tree, memory: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of an encoder's output [b, s, embed], each [b, s, kv, d]."""
    k, v = (
        jnp.einsum("bsd,dhk->bshk", memory, weight[name].astype(frame.compute)) for name in "kv"
    )
    return named(frame.hold(k, "kv_cache"), "k"), named(frame.hold(v, "kv_cache"), "v")


def from_cache(frame: Frame, weight: Tree, x: jax.Array, keys: Any, values: Any) -> jax.Array:
    """Attention of one token a sequence, x [b, 1, embed], to keys and values [b, kv, t, d]."""
    kind = frame.compute
    q = cross_queries(frame, weight, x)
    rows = q[:, 0].reshape(q.shape[0], keys.shape[1], -1, q.shape[-1])
    scores = jnp.einsum(
        "bkgh,bkth->bkgt", rows, keys.astype(kind), preferred_element_type=jnp.float32
    )
    shares = jax.nn.softmax(scores * scale_of(frame.workload.model), axis=-1).astype(kind)
    mixed = jnp.einsum("bkgt,bkth->bkgh", shares, values.astype(kind))
    return output(frame, weight, mixed.reshape(q.shape))
