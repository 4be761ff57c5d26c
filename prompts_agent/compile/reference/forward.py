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
from prompts_agent.compile.reference.cross import cross_keys_values, cross_queries
from prompts_agent.compile.reference.experts import CAPACITY_FACTOR, mixture
from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.remat import rematted
from prompts_agent.compile.reference.stacks import LayerKind, Stack, encoder_stacks, stacks
from prompts_agent.compile.reference.untyped import named
from prompts_agent.layout.layout import Remat

__all__ = [
    "Attend",
    "embedded",
    "encoded",
    "feed_forward",
    "forward",
    "layer_of",
    "layer_scan",
    "logits",
]

Attend = Callable[[Tree, jax.Array], jax.Array]
"""(attention weights, normed x [b, s, embed]) → attention's output [b, s, embed]."""


def forward(
    frame: Frame, params: Tree, tokens: jax.Array, remat: Remat, inputs: jax.Array | None = None
) -> jax.Array:
    """Tokens [b, s] → [b, s, embed] before the output table; `inputs` are an encoder's tokens."""
    memory = None if inputs is None else encoded(frame, params, inputs, remat)
    batch, sequence = tokens.shape
    positions = jnp.broadcast_to(jnp.arange(sequence)[None], (batch, sequence))
    x = embedded(frame, params, tokens, positions)
    for stack, weight in zip(stacks(frame.workload.model), params["layers"], strict=True):
        x = layer_scan(frame, stack, positions, remat, memory=memory)(x, weight)
    return normed(frame.workload.model, params["norm"], x)


def encoded(frame: Frame, params: Tree, inputs: jax.Array, remat: Remat) -> jax.Array:
    """An encoder's tokens [b, s] → what its last layer says of them, [b, s, embed]."""
    positions = jnp.broadcast_to(jnp.arange(inputs.shape[1])[None], inputs.shape)
    x, own = embedded(frame, params, inputs, positions), params["encoder"]
    for stack, weight in zip(encoder_stacks(frame.workload.model), own["layers"], strict=True):
        x = layer_scan(frame, stack, positions, remat, causal=False)(x, weight)
    return normed(frame.workload.model, own["norm"], x)


def layer_scan(
    frame: Frame,
    stack: Stack,
    positions: jax.Array,
    remat: Remat,
    *,
    causal: bool = True,
    memory: jax.Array | None = None,
) -> Callable[[jax.Array, Any], jax.Array]:
    """(x [b, s, embed], weights stacked over periods) → x after all of them.

    Layers with attention to an encoder read its output, `memory`.
    """

    def cross(weight: Tree, x: jax.Array) -> jax.Array:
        assert memory is not None  # noqa: S101  (only encoder-decoders come here)
        q, (k, v) = cross_queries(frame, weight, x), cross_keys_values(frame, weight, memory)
        return output(frame, weight, attention(frame, q, k, v, window=None, causal=False))

    def layer(weight: Tree, x: jax.Array, kind: LayerKind) -> jax.Array:
        def attend(weight: Tree, x: jax.Array) -> jax.Array:
            q, k, v = queries_keys_values(frame, weight, x, positions)
            return output(
                frame, weight, attention(frame, q, k, v, window=kind.window, causal=causal)
            )

        return layer_of(frame, weight, x, attend, factor=CAPACITY_FACTOR, cross=cross)

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
    frame: Frame,
    weight: Tree,
    x: jax.Array,
    attend: Attend,
    *,
    factor: float | None,
    cross: Attend | None = None,
) -> jax.Array:
    """One layer around `attend`: pre-norm, with norms after it too where there are four, or with
    attention and mlp side by side; then around `cross` where it has weights for that.
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
    if "cross" in weight and cross is not None:
        seen = cross(weight["cross"], normed(model, norms["2"], x))
        x = frame.hold(x + seen, "activations")
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
