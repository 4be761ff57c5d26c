"""Forward: tokens through the embedding, every layer by scan, and the last norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from prompts_agent.compile.reference.attention import attention
from prompts_agent.compile.reference.block import (
    Tree,
    dense_mlp,
    normed,
    output,
    queries_keys_values,
)
from prompts_agent.compile.reference.experts import CAPACITY_FACTOR, mixture
from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.remat import rematted
from prompts_agent.compile.reference.stacks import LayerKind, Stack, stacks
from prompts_agent.compile.reference.untyped import named
from prompts_agent.layout.layout import Remat

__all__ = ["Attend", "embedded", "feed_forward", "forward", "layer_of", "layer_scan", "logits"]

Attend = Callable[[Tree, jax.Array], jax.Array]
"""(attention weights, normed x [b, s, embed]) → attention's output [b, s, embed]."""


def forward(frame: Frame, params: Tree, tokens: jax.Array, remat: Remat) -> jax.Array:
    """Tokens [b, s] → [b, s, embed] before the output table."""
    batch, sequence = tokens.shape
    positions = jnp.broadcast_to(jnp.arange(sequence)[None], (batch, sequence))
    x = embedded(frame, params, tokens, positions)
    for stack, weight in zip(stacks(frame.workload.model), params["layers"], strict=True):
        x = layer_scan(frame, stack, positions, remat)(x, weight)
    return normed(frame.workload.model, params["norm"], x)


def layer_scan(
    frame: Frame, stack: Stack, positions: jax.Array, remat: Remat
) -> Callable[[jax.Array, Any], jax.Array]:
    """(x [b, s, embed], weights stacked over periods) → x after all of them."""

    def layer(weight: Tree, x: jax.Array, kind: LayerKind) -> jax.Array:
        def attend(weight: Tree, x: jax.Array) -> jax.Array:
            q, k, v = queries_keys_values(frame, weight, x, positions)
            return output(frame, weight, attention(frame, q, k, v, window=kind.window))

        return layer_of(frame, weight, x, attend, factor=CAPACITY_FACTOR)

    layers = [rematted(_bound(layer, kind), remat) for kind in stack.kinds]

    def period(x: jax.Array, weight: Any) -> tuple[jax.Array, None]:
        for one, own in zip(layers, weight, strict=True):
            x = one(own, x)
        return x, None

    def run(x: jax.Array, weight: Any) -> jax.Array:
        found: jax.Array = lax.scan(period, x, weight)[0]
        return found

    return run


def _bound(layer: Callable[..., jax.Array], kind: LayerKind) -> Callable[..., jax.Array]:
    return lambda weight, x: layer(weight, x, kind)


def embedded(frame: Frame, params: Tree, tokens: jax.Array, positions: jax.Array) -> jax.Array:
    """Tokens [b, s] → [b, s, embed]."""
    table = params["embedding"].astype(frame.compute)
    if frame.one_hot_lookup:
        picked = jax.nn.one_hot(tokens, table.shape[0], dtype=frame.compute)
        x = jnp.einsum("bsv,vd->bsd", picked, table)
    else:
        x = jnp.take(table, tokens, axis=0)
    if "positions" in params:
        x = x + jnp.take(params["positions"].astype(frame.compute), positions, axis=0)
    return frame.hold(x, "activations")


def logits(frame: Frame, params: Tree, x: jax.Array) -> jax.Array:
    """[b, s, embed] → [b, s, vocab] in the compute dtype."""
    kind = frame.compute
    if "logits" in params:
        found = jnp.einsum("bsd,dv->bsv", x, params["logits"].astype(kind))
    else:
        found = jnp.einsum("bsd,vd->bsv", x, params["embedding"].astype(kind))
    return frame.hold(found, "activations.logits")


def layer_of(
    frame: Frame, weight: Tree, x: jax.Array, attend: Attend, *, factor: float | None
) -> jax.Array:
    """One decoder layer around `attend`: pre-norm, with norms after it too where there are four,
    or with attention and mlp side by side.
    """
    model, norms = frame.workload.model, weight["norms"]
    x = named(frame.hold(x, "activations"), "layer_input")
    first = normed(model, norms["0"], x)
    mixed = attend(weight["attention"], first)
    if model.parallel_block:
        second = normed(model, norms["1"], x) if "1" in norms else first
        y = x + mixed + feed_forward(frame, weight, second, factor=factor)
        return frame.hold(y, "activations")
    if "3" in norms:
        mixed = normed(model, norms["2"], mixed)
    x = frame.hold(x + mixed, "activations")
    second = normed(model, norms["1" if "1" in norms else "0"], x)
    out = feed_forward(frame, weight, second, factor=factor)
    if "3" in norms:
        out = normed(model, norms["3"], out)
    return frame.hold(x + out, "activations")


def feed_forward(frame: Frame, weight: Tree, x: jax.Array, *, factor: float | None) -> jax.Array:
    """The mlp, or the experts, of a layer."""
    if "mlp" in weight:
        return dense_mlp(frame, weight["mlp"], x)
    return mixture(frame, weight["experts"], x, factor=factor)
