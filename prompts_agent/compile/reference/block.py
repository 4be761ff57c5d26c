"""Block: the parts of one decoder layer that training, prefill and decode share."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.untyped import named
from prompts_agent.model.spec import ModelSpec

__all__ = ["dense_mlp", "normed", "output", "queries_keys_values", "rotated"]

Tree = dict[str, Any]

_EPSILON = 1e-5
_ROTARY_BASE = 500_000.0
"""Llama 3's base; it changes no shape."""


def normed(model: ModelSpec, weight: Tree, x: jax.Array) -> jax.Array:
    """RMS norm or layer norm over the last dim, in fp32."""
    wide = x.astype(jnp.float32)
    if model.norm != "rms":
        wide = wide - jnp.mean(wide, axis=-1, keepdims=True)
    wide = wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + _EPSILON)
    found: jax.Array = wide.astype(x.dtype) * weight["scale"].astype(x.dtype)
    return found + weight["bias"].astype(x.dtype) if "bias" in weight else found


def rms(scale: jax.Array, x: jax.Array) -> jax.Array:
    """RMS norm of a latent or a head."""
    wide = x.astype(jnp.float32)
    wide = wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + _EPSILON)
    return wide.astype(x.dtype) * scale.astype(x.dtype)


def rotated(x: jax.Array, positions: jax.Array) -> jax.Array:
    """Rotary embedding (arXiv 2104.09864) of x [b, s, heads, d] at positions [b, s]."""
    half = x.shape[-1] // 2
    rates = _ROTARY_BASE ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angles = positions[..., None, None].astype(jnp.float32) * rates
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    sine, cosine = jnp.sin(angles), jnp.cos(angles)
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


def queries_keys_values(
    frame: Frame, weight: Tree, x: jax.Array, positions: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """X [b, s, embed] → q [b, s, heads, d], k [b, s, kv, d], v [b, s, kv, dv], rotated and held."""
    model, kind = frame.workload.model, frame.compute
    if model.mla is not None:
        q, k, v = _latent(frame, weight, x, positions)
    else:
        q, k, v = (
            jnp.einsum("bsd,dhk->bshk", x, weight[name].astype(kind)) for name in ("q", "k", "v")
        )
        if model.qkv_bias:
            q, k, v = (
                y + weight[f"{name}_bias"].astype(kind)
                for y, name in ((q, "q"), (k, "k"), (v, "v"))
            )
        if model.qk_norm:
            q, k = rms(weight["q_norm"], q), rms(weight["k_norm"], k)
        if not model.learned_positions and not model.position_buckets:
            q, k = rotated(q, positions), rotated(k, positions)
    keys = frame.specs["kv_cache"] if model.mla is None else frame.specs["activations.heads"]
    q = named(frame.hold(q, "activations.heads"), "q")
    return q, named(frame.hold(k, keys), "k"), named(frame.hold(v, keys), "v")


def latent_queries(frame: Frame, weight: Tree, x: jax.Array) -> jax.Array:
    """MLA's queries before rotation, [b, s, heads, nope + rope]."""
    kind = frame.compute
    if "q" in weight:
        return jnp.einsum("bsd,dhk->bshk", x, weight["q"].astype(kind))
    down = rms(weight["q_norm"], jnp.einsum("bsd,dr->bsr", x, weight["q_down"].astype(kind)))
    return jnp.einsum("bsr,rhk->bshk", down, weight["q_up"].astype(kind))


def latent_keys(
    frame: Frame, weight: Tree, x: jax.Array, positions: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """MLA's cache of a token: the normed latent [b, s, rank] and its rotary key [b, s, rope]."""
    mla = frame.workload.model.mla
    assert mla is not None  # noqa: S101  (only MLA models come here)
    down = jnp.einsum("bsd,dr->bsr", x, weight["kv_down"].astype(frame.compute))
    latent = rms(weight["kv_norm"], down[..., : mla.kv_lora_rank])
    return latent, rotated(down[..., None, mla.kv_lora_rank :], positions)[:, :, 0]


def _latent(
    frame: Frame, weight: Tree, x: jax.Array, positions: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    mla = frame.workload.model.mla
    assert mla is not None  # noqa: S101  (only MLA models come here)
    kind, nope = frame.compute, mla.qk_nope_head_dim
    q = latent_queries(frame, weight, x)
    q = jnp.concatenate([q[..., :nope], rotated(q[..., nope:], positions)], axis=-1)
    latent, turned = latent_keys(frame, weight, x, positions)
    k = jnp.einsum("bsr,rhk->bshk", latent, weight["k_up"].astype(kind))
    shared = jnp.broadcast_to(turned[:, :, None], (*k.shape[:3], mla.qk_rope_head_dim))
    v = jnp.einsum("bsr,rhk->bshk", latent, weight["v_up"].astype(kind))
    return q, jnp.concatenate([k, shared], axis=-1), v


def output(frame: Frame, weight: Tree, heads: jax.Array) -> jax.Array:
    """Attention's output projection, [b, s, heads, dv] → [b, s, embed]."""
    heads = named(frame.hold(heads, "activations.heads"), "attention")
    x = jnp.einsum("bshk,hkd->bsd", heads, weight["o"].astype(frame.compute))
    if "o_bias" in weight:
        x = x + weight["o_bias"].astype(frame.compute)
    return named(frame.hold(x, "activations"), "projection")


def activated(gate: jax.Array | None, up: jax.Array) -> jax.Array:
    """SwiGLU where there is a gate (arXiv 2002.05202), GELU where there is none."""
    return jax.nn.gelu(up) if gate is None else jax.nn.silu(gate) * up


def dense_mlp(frame: Frame, weight: Tree, x: jax.Array) -> jax.Array:
    """The feed-forward block, [b, s, embed] → [b, s, embed]."""
    kind = frame.compute

    def into(name: str) -> jax.Array:
        y = jnp.einsum("bsd,df->bsf", x, weight[name].astype(kind))
        if f"{name}_bias" in weight:
            y = y + weight[f"{name}_bias"].astype(kind)
        return named(frame.hold(y, "activations.mlp"), "mlp")

    inner = activated(into("gate") if "gate" in weight else None, into("up"))
    y = jnp.einsum("bsf,fd->bsd", inner, weight["down"].astype(kind))
    if "down_bias" in weight:
        y = y + weight["down_bias"].astype(kind)
    return frame.hold(y, "activations")


def scale_of(model: ModelSpec) -> float:
    """What scores are multiplied by."""
    return 1.0 / math.sqrt(model.qk_head_dim)
