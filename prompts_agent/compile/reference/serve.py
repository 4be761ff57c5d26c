"""Serve: a prefill step and a decode step, both with the KV cache as a donated argument.

The cache holds every sequence of a replica, [periods, sequences, kv_heads, tokens, head_dim] a
layer of a stack's period, or MLA's latents [periods, sequences, tokens, rank + rope]. It travels in
the carry of the scan over layers, so that it is updated in place as servers do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from prompts_agent.compile.encoder import encoder_tokens
from prompts_agent.compile.reference.attention import attention
from prompts_agent.compile.reference.block import (
    Tree,
    latent_keys,
    latent_queries,
    normed,
    output,
    queries_keys_values,
    rotated,
    scale_of,
)
from prompts_agent.compile.reference.cross import CROSS, cross_keys_values, from_cache
from prompts_agent.compile.reference.dtypes import dtype
from prompts_agent.compile.reference.experts import CAPACITY_FACTOR
from prompts_agent.compile.reference.forward import embedded, encoded, layer_of, logits
from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.stacks import LayerKind, stacks
from prompts_agent.compile.reference.step import Step
from prompts_agent.compile.reference.weights import Weight, weights
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.specs import Spec

__all__ = ["decode_step", "prefill_step"]

Cache = list[list[dict[str, Any]]]
"""[stack][layer of the period] → {"k", "v"} or {"latent"}."""


def decode_step(frame: Frame) -> Step:
    """(params, cache, tokens [sequences], position) → (cache, next tokens)."""
    params, cache = _params(frame), _cache(frame)
    sequences = _sequences(frame)
    tokens = frame.abstract((sequences,), (frame.specs["activations"][0],), jnp.dtype(jnp.int32))
    position = frame.abstract((), (), jnp.dtype(jnp.int32))

    def step(params: Any, cache: Cache, tokens: jax.Array, position: jax.Array) -> Any:
        positions = jnp.broadcast_to(position, (sequences, 1))
        x = embedded(frame, params, tokens[:, None], positions)
        attend = _decode_attend(frame, positions, position)
        x, cache = _through(frame, params, x, cache, (attend, _cross_decode(frame)))
        return cache, jnp.argmax(logits(frame, params, x)[:, 0], axis=-1)

    return _step(step, params, cache, (tokens, position))


def prefill_step(frame: Frame) -> Step:
    """(params, cache, prompts [groups, prompt], slot) → (cache, first tokens).

    One prompt a group of sequences at a time; it is written into the group's cache at `slot`.
    """
    params, cache = _params(frame), _cache(frame)
    groups, prompt = _groups(frame), _prompt(frame)
    tokens = frame.abstract((groups, prompt), frame.specs["tokens"], jnp.dtype(jnp.int32))
    slot = frame.abstract((), (), jnp.dtype(jnp.int32))

    def step(params: Any, cache: Cache, tokens: jax.Array, slot: jax.Array) -> Any:
        cross: Attend | None = None
        if frame.workload.model.encoder_layers:
            # The encoder reads the prompt, and the decoder begins with a token of its own.
            cross = _cross_prefill(frame, encoded(frame, params, tokens, Remat.NONE), slot)
            tokens = tokens[:, :1]
        positions = jnp.broadcast_to(jnp.arange(tokens.shape[1])[None], tokens.shape)
        x = embedded(frame, params, tokens, positions)
        attend = _prefill_attend(frame, positions, slot)
        x, cache = _through(frame, params, x, cache, (attend, cross))
        return cache, jnp.argmax(logits(frame, params, x[:, -1:])[:, 0], axis=-1)

    return _step(step, params, cache, (tokens, slot))


def _step(function: Callable[..., Any], params: Any, cache: Cache, inputs: tuple[Any, ...]) -> Step:
    return Step(
        function=function,
        arguments=(params, cache, *inputs),
        classes=("parameters", "kv_cache", *("inputs" for _ in inputs)),
        donated=(1,),
        # A server stores its cache and its weights as its kernels read them; row-major order would
        # cost a copy (of all expert weights on GPUs).
        free_layout=1,
        free_inputs=(0,),
        out_shardings=(jax.tree.map(lambda a: a.sharding, cache), None),
    )


def _params(frame: Frame) -> Any:
    kind = dtype(frame.workload.precision.weights)
    return jax.tree.map(
        lambda w: frame.abstract(w.shape, w.spec, kind),
        weights(frame.workload.model, frame.specs),
        is_leaf=lambda node: isinstance(node, Weight),
    )


def _prompt(frame: Frame) -> int:
    workload = frame.workload
    if workload.model.encoder_layers:
        return encoder_tokens(workload)
    return workload.traffic.input_tokens if workload.traffic is not None else workload.sequence


def _groups(frame: Frame) -> int:
    """Replicas of the attention: each has a cache of its own."""
    return frame.layout.batch_shards * frame.layout.attention_data


def _sequences(frame: Frame) -> int:
    """Sequences in the cache, over all replicas: an equal number for each group."""
    layout = frame.layout
    share = math.ceil(frame.workload.global_batch / layout.batch_shards)
    if layout.batch_limit is not None:
        share = min(share, layout.batch_limit)
    return math.ceil(share / layout.attention_data) * _groups(frame)


def _stored_heads(frame: Frame) -> int:
    """KV heads in the cache. With more tensor ranks than KV heads, each rank stores a copy of the
    one that its queries need, as servers do.
    """
    model, ranks = frame.workload.model, frame.size("tensor")
    return ranks if ranks % model.kv_heads == 0 else model.kv_heads


def _copied(frame: Frame, x: jax.Array) -> jax.Array:
    """Keys or values [b, s, kv, d] as the cache stores them, [b, kv stored, s, d]."""
    copies = _stored_heads(frame) // x.shape[2]
    return jnp.repeat(x, copies, axis=2).transpose(0, 2, 1, 3)


def _cache(frame: Frame) -> Cache:
    model = frame.workload.model
    kind = dtype(frame.layout.kv_dtype)
    batch, sequence = frame.specs["kv_cache"][:2]
    stored, heads = _stored_heads(frame), frame.specs["activations.heads"][2]
    sequences = _sequences(frame)
    found: Cache = []
    for stack in stacks(model):
        layers = []
        for layer in stack.kinds:
            whole = frame.workload.sequence
            if model.encoder_layers:
                whole = max(1, whole - encoder_tokens(frame.workload))
            tokens = min(whole, layer.window or whole)
            if model.mla is not None:
                width = model.mla.kv_lora_rank + model.mla.qk_rope_head_dim
                shape: tuple[int, ...] = (stack.periods, sequences, tokens, width)
                spec: Spec = (None, batch, sequence, None)
                layers.append({"latent": frame.abstract(shape, spec, kind)})
                continue
            shape = (stack.periods, sequences, stored, tokens, model.head_dim)
            spec = (None, batch, heads, sequence, None)
            layers.append({name: frame.abstract(shape, spec, kind) for name in ("k", "v")})
            if model.encoder_layers:
                shape = (*shape[:3], encoder_tokens(frame.workload), model.head_dim)
                layers[-1] |= {name: frame.abstract(shape, spec, kind) for name in CROSS}
        found.append(layers)
    return found


Attend = Callable[[Tree, jax.Array, dict[str, Any], jax.Array, LayerKind], tuple[jax.Array, Any]]
"""(weights, x, the stack's cache of this layer, which period, kind) → (output, what it wrote)."""


def _through(
    frame: Frame, params: Any, x: jax.Array, cache: Cache, attend: tuple[Attend, Attend | None]
) -> tuple[jax.Array, Cache]:
    """All layers, by attention to the past and to an encoder; the cache rides in the carry."""
    after: Cache = []
    model = frame.workload.model
    for stack, weight, held in zip(stacks(model), params["layers"], cache, strict=True):
        period = _period(frame, stack.kinds, attend, CAPACITY_FACTOR if x.shape[1] > 1 else None)
        (x, held_after, _), _ = lax.scan(period, (x, held, jnp.int32(0)), weight)
        after.append(held_after)
    return normed(model, params["norm"], x), after


def _period(
    frame: Frame,
    kinds: tuple[LayerKind, ...],
    attend: tuple[Attend, Attend | None],
    factor: float | None,
) -> Callable[[Any, Any], tuple[Any, None]]:
    """One period as a scan's body; its carry is (x, the stack's cache, which period)."""

    def period(carry: Any, own: Any) -> tuple[Any, None]:
        x, held, index = carry
        written = []
        for kind, one, old in zip(kinds, own, held, strict=True):
            kept = dict(old)
            past, cross = (_keeping(call, kept, index, kind) for call in attend)
            x = layer_of(frame, one, x, past, factor=factor, cross=cross)
            written.append(kept)
        return (x, written, index + 1), None

    return period


def _keeping(
    attend: Attend | None, kept: dict[str, Any], index: jax.Array, kind: LayerKind
) -> Callable[[Tree, jax.Array], jax.Array]:
    """`attend` as a layer calls it; what it writes is put into `kept`."""

    def attended(weight: Tree, x: jax.Array) -> jax.Array:
        assert attend is not None  # noqa: S101  (a layer without such attention calls none)
        y, new = attend(weight, x, kept, index, kind)
        kept.update(new)
        return y

    return attended


def _write(cache: jax.Array, new: jax.Array, at: tuple[Any, ...]) -> jax.Array:
    zero = jnp.int32(0)
    start = tuple(jnp.asarray(i, jnp.int32) if i is not None else zero for i in at)
    return lax.dynamic_update_slice(cache, new.astype(cache.dtype), start)


def _stored(
    frame: Frame, cache: jax.Array, new: jax.Array, index: jax.Array, slot: jax.Array
) -> jax.Array:
    """The cache with what a prompt of every group gives at a slot.

    [periods, groups × each, …] seen as [periods, groups, each, …]: a group writes its own.
    """
    groups = _groups(frame)
    each = cache.shape[1] // groups
    split = cache.reshape(cache.shape[0], groups, each, *cache.shape[2:])
    at = (index, None, slot, *(None for _ in cache.shape[2:]))
    return _write(split, new[None, :, None], at).reshape(cache.shape)


def _cross_prefill(frame: Frame, memory: jax.Array, slot: jax.Array) -> Attend:
    """Keys and values of the encoder's output are worked out once and kept."""

    def attend(
        weight: Tree, x: jax.Array, held: dict[str, Any], index: jax.Array, kind: LayerKind
    ) -> tuple[jax.Array, Any]:
        del kind
        new = [_copied(frame, y) for y in cross_keys_values(frame, weight, memory)]
        written = {
            name: _stored(frame, held[name], y, index, slot)
            for name, y in zip(CROSS, new, strict=True)
        }
        return from_cache(frame, weight, x, *new), written

    return attend


def _cross_decode(frame: Frame) -> Attend:
    def attend(
        weight: Tree, x: jax.Array, held: dict[str, Any], index: jax.Array, kind: LayerKind
    ) -> tuple[jax.Array, Any]:
        del kind
        kept = [lax.dynamic_index_in_dim(held[n], index, 0, keepdims=False) for n in CROSS]
        return from_cache(frame, weight, x, *kept), {}

    return attend


def _prefill_attend(frame: Frame, positions: jax.Array, slot: jax.Array) -> Attend:
    def attend(
        weight: Tree, x: jax.Array, held: dict[str, Any], index: jax.Array, kind: LayerKind
    ) -> tuple[jax.Array, Any]:
        q, k, v = queries_keys_values(frame, weight, x, positions)
        if "latent" in held:
            latent, turned = latent_keys(frame, weight, x, positions)
            new = {"latent": jnp.concatenate([latent, turned], axis=-1)}
        else:
            new = {"k": _copied(frame, k), "v": _copied(frame, v)}
        room = held["latent"].shape[2] if "latent" in held else held["k"].shape[3]
        new = {name: y[..., -room:, :] for name, y in new.items()}
        held = {name: _stored(frame, held[name], y, index, slot) for name, y in new.items()}
        if q.shape[1] == 1:
            # One token sees itself alone.
            return output(frame, weight, jnp.repeat(v, q.shape[2] // v.shape[2], axis=2)), held
        return output(frame, weight, attention(frame, q, k, v, window=kind.window)), held

    return attend


def _decode_attend(frame: Frame, positions: jax.Array, position: jax.Array) -> Attend:
    model = frame.workload.model

    def attend(
        weight: Tree, x: jax.Array, held: dict[str, Any], index: jax.Array, kind: LayerKind
    ) -> tuple[jax.Array, Any]:
        del kind
        if model.mla is not None:
            return _latent_decode(frame, weight, x, held, index, positions, position)
        q, k, v = queries_keys_values(frame, weight, x, positions)
        place = position % held["k"].shape[3]
        at = (index, None, None, place, None)
        held = {
            name: _write(held[name], _copied(frame, y)[None], at)
            for name, y in (("k", k), ("v", v))
        }
        keys, values = (lax.dynamic_index_in_dim(held[n], index, 0, keepdims=False) for n in "kv")
        rows = q[:, 0].reshape(q.shape[0], keys.shape[1], -1, model.head_dim)
        scores = jnp.einsum(
            "bkgh,bkth->bkgt", rows, keys.astype(frame.compute), preferred_element_type=jnp.float32
        )
        shares = _shares(scores * scale_of(model), position, keys.shape[2]).astype(frame.compute)
        mixed = jnp.einsum("bkgt,bkth->bkgh", shares, values.astype(frame.compute))
        return output(frame, weight, mixed.reshape(q.shape)), held

    return attend


def _shares(scores: jax.Array, position: jax.Array, tokens: int) -> jax.Array:
    return jax.nn.softmax(jnp.where(jnp.arange(tokens) <= position, scores, -1e30), axis=-1)


def _latent_decode(
    frame: Frame,
    weight: Tree,
    x: jax.Array,
    held: dict[str, Any],
    index: jax.Array,
    positions: jax.Array,
    position: jax.Array,
) -> tuple[jax.Array, Any]:
    """Attention in the latent space: the up-projections are absorbed into queries and outputs
    (arXiv 2405.04434, section 2.1.2).
    """
    model = frame.workload.model
    mla = model.mla
    assert mla is not None  # noqa: S101  (only MLA models come here)
    kind, rank, nope = frame.compute, mla.kv_lora_rank, mla.qk_nope_head_dim
    latent, turned = latent_keys(frame, weight, x, positions)
    new = jnp.concatenate([latent, turned], axis=-1)[None]
    held = {"latent": _write(held["latent"], new, (index, None, position, None))}
    cache = lax.dynamic_index_in_dim(held["latent"], index, 0, keepdims=False).astype(kind)
    q = latent_queries(frame, weight, x)
    inward = jnp.einsum("bshk,rhk->bshr", q[..., :nope], weight["k_up"].astype(kind))
    rows = jnp.concatenate([inward, rotated(q[..., nope:], positions)], axis=-1)[:, 0]
    scores = jnp.einsum("bhr,btr->bht", rows, cache, preferred_element_type=jnp.float32)
    shares = _shares(scores * scale_of(model), position, cache.shape[1]).astype(kind)
    mixed = jnp.einsum("bht,btr->bhr", shares, cache[..., :rank])
    out = jnp.einsum("bhr,rhk->bhk", mixed, weight["v_up"].astype(kind))
    return output(frame, weight, out[:, None]), held
