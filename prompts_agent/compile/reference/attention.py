"""Attention over whole sequences, cut over batch, heads and (for queries) the sequence.

Each device sees its own queries and, where the sequence is cut over `context`, all keys and values,
gathered (the all-gather form of context parallelism). Kernels:

- `splash`: the flash kernel that jax ships for TPUs;
- `cudnn`: cuDNN's fused attention, as jax calls it on GPUs;
- `blocked`: plain jax, a block of queries at a time, each recomputed in the backward pass, so that
  it holds about what a flash kernel holds. It runs anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding

from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.untyped import partition
from prompts_agent.layout.specs import Spec

__all__ = ["attention"]

Kernel = Callable[[Any, jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]

_LANES = 128
"""Head dims of the splash kernel are multiples of a TPU register's lanes."""
_BLOCK = 512
"""Queries that `blocked` works on at once."""
_SPLASH_BLOCK = 2048
"""Keys of a splash block, as in the v6e recipes. The fused backward kernel writes one partial
gradient of the queries for each block of keys, so small blocks cost HBM."""
_SPLASH_QUERIES, _SPLASH_KEYS = 1024, 512
"""What is multiplied at once: its fp32 scores take 2 MiB of the 16 MiB of VMEM that a kernel may
have by default. 2048 by 2048 takes 16 MiB and is refused by code generation."""


class _Seen(NamedTuple):
    """Which keys a query sees."""

    window: int | None
    causal: bool


def attention(
    frame: Frame,
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    *,
    window: int | None,
    causal: bool = True,
) -> jax.Array:
    """Attention to what came before, or to all keys where it is not `causal`.

    q [b, s, heads, d], k [b, t, kv, d], v [b, t, kv, dv] → [b, s, heads, dv].

    `window` is how many tokens back a query sees.
    """
    batch, sequence, heads, _ = frame.specs["activations.heads"]
    keys = frame.specs["kv_cache"][2] if frame.workload.model.mla is None else heads
    cuts: list[Spec] = [
        (batch, heads, sequence, None), (batch, keys, None, None), (batch, keys, None, None)
    ]  # fmt: skip
    arrays = [x.transpose(0, 2, 1, 3) for x in (q, k, v)]
    specs = [frame.spec(s, x.shape) for s, x in zip(cuts, arrays, strict=True)]
    whole, group = q.shape[1], q.shape[2] // k.shape[2]
    held, held_spec, kernel = _kernel(frame, q, v, _Seen(window, causal))

    def local(held: Any, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        k, v = (_own_heads(frame, x, q.shape[1], group, cut=specs[1][1]) for x in (k, v))
        start = lax.axis_index(frame.parts("context")) * q.shape[2] if q.shape[2] < whole else 0
        return kernel(held, q, k, v, jnp.asarray(start, jnp.int32))

    out = jax.shard_map(
        local,
        mesh=frame.mesh,
        in_specs=(held_spec, *specs),
        out_specs=frame.spec(cuts[0], (*arrays[0].shape[:3], v.shape[-1])),
        check_vma=False,
    )(held, *arrays)
    return out.transpose(0, 2, 1, 3)


def _own_heads(frame: Frame, x: jax.Array, heads: int, group: int, *, cut: object) -> jax.Array:
    """The keys or values of each local query head; a device with all KV heads picks its own."""
    if cut is None and frame.size("tensor") > 1:
        mine = lax.axis_index(frame.parts("tensor")) * heads + jnp.arange(heads)
        return jnp.take(x, mine // group, axis=1)
    return x if heads == x.shape[1] else jnp.repeat(x, heads // x.shape[1], axis=1)


def _kernel(frame: Frame, q: jax.Array, v: jax.Array, seen: _Seen) -> tuple[Any, Any, Kernel]:
    """What the kernel holds (a splash kernel has arrays of its own), its specs, and the call."""
    aligned = q.shape[-1] % _LANES == 0 and v.shape[-1] % _LANES == 0
    if frame.kernel == "splash" and aligned:
        return _splash(frame, q.shape[2], (q.shape[1], v.shape[1]), seen)
    if frame.kernel == "cudnn" and q.shape[-1] == v.shape[-1] and frame.size("context") == 1:
        return (), (), _cudnn(seen)
    return (), (), _blocked(seen)


def _splash(
    frame: Frame, heads: int, lengths: tuple[int, int], seen: _Seen
) -> tuple[Any, Any, Kernel]:
    from jax.experimental.pallas.ops.tpu.splash_attention import (
        splash_attention_kernel,
        splash_attention_mask,
    )

    shards, rows = frame.size("tensor"), frame.size("context")
    one: Any
    if not seen.causal:
        one = splash_attention_mask.FullMask(lengths)
    elif seen.window is None:
        one = splash_attention_mask.CausalMask(lengths, shard_count=rows)
    else:
        one = splash_attention_mask.LocalMask(lengths, (seen.window - 1, 0), 0, shard_count=rows)
    queries = math.gcd(_SPLASH_QUERIES, lengths[0] // rows)
    block = math.gcd(_SPLASH_BLOCK, lengths[1] // rows)
    keys = math.gcd(_SPLASH_KEYS, block)
    sizes = splash_attention_kernel.BlockSizes(
        block_q=queries, block_kv=block, block_kv_compute=keys,
        block_q_dkv=queries, block_kv_dkv=block, block_kv_dkv_compute=keys,
        use_fused_bwd_kernel=True,
    )  # fmt: skip
    held = splash_attention_kernel.make_splash_mha(
        mask=splash_attention_mask.MultiHeadMask([one] * heads),
        head_shards=shards,
        q_seq_shards=rows,
        block_sizes=sizes,
        residual_checkpoint_name="attention",
    )
    cut = partition(
        frame.parts("tensor") if shards > 1 else None, frame.parts("context") if rows > 1 else None
    )

    def kernel(held: Any, q: jax.Array, k: jax.Array, v: jax.Array, start: jax.Array) -> jax.Array:
        del start
        out: jax.Array = jax.vmap(held)(q / math.sqrt(q.shape[-1]), k, v)
        return out

    return held, held.manual_sharding_spec(NamedSharding(frame.mesh, cut)), kernel


def _cudnn(seen: _Seen) -> Kernel:
    def kernel(held: Any, q: jax.Array, k: jax.Array, v: jax.Array, start: jax.Array) -> jax.Array:
        del held, start
        turned = [x.transpose(0, 2, 1, 3) for x in (q, k, v)]
        out: jax.Array = jax.nn.dot_product_attention(
            *turned,
            is_causal=seen.causal,
            implementation="cudnn",
            local_window_size=None if seen.window is None else (seen.window - 1, 0),
        )
        return out.transpose(0, 2, 1, 3)

    return kernel


def _blocked(what: _Seen) -> Kernel:
    def block_of(
        q: jax.Array, k: jax.Array, v: jax.Array, first: jax.Array, *, scale: float
    ) -> jax.Array:
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k, preferred_element_type=jnp.float32) * scale
        behind = first + jnp.arange(q.shape[2])[:, None] - jnp.arange(k.shape[2])[None, :]
        seen = (behind >= 0) | (not what.causal)
        if what.window is not None:
            seen &= behind < what.window
        shares = jax.nn.softmax(jnp.where(seen, scores, -1e30), axis=-1).astype(v.dtype)
        return jnp.einsum("bhqk,bhkd->bhqd", shares, v)

    def kernel(held: Any, q: jax.Array, k: jax.Array, v: jax.Array, start: jax.Array) -> jax.Array:
        del held
        b, heads, sequence, dim = q.shape
        block = math.gcd(_BLOCK, sequence)
        step = jax.checkpoint(
            lambda at, rows: (at + block, block_of(rows, k, v, at, scale=1 / math.sqrt(dim)))
        )
        rows = q.reshape(b, heads, sequence // block, block, dim).transpose(2, 0, 1, 3, 4)
        _, out = lax.scan(step, start, rows)
        joined: jax.Array = out.transpose(1, 2, 0, 3, 4).reshape(b, heads, sequence, v.shape[-1])
        return joined

    return kernel
