"""Optimizer: AdamW, momentum or plain gradient descent, by the number of slots a parameter has.

Everything is element-wise on shards, so what matters here is dtypes and which state exists.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["updated"]

_LEARNING_RATE, _DECAY, _FIRST, _SECOND, _EPSILON = 3e-4, 0.1, 0.9, 0.95, 1e-8


def updated(params: Any, gradients: Any, slots: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """New params and slots, each in its old dtype. Gradients are clipped to a norm of 1 first."""
    squares = [jnp.sum(jnp.square(g.astype(jnp.float32))) for g in jax.tree.leaves(gradients)]
    clip = jnp.minimum(1.0, jax.lax.rsqrt(sum(squares, jnp.float32(1e-12))))

    def one(param: jax.Array, gradient: jax.Array, *held: jax.Array) -> tuple[jax.Array, ...]:
        wide = gradient.astype(jnp.float32) * clip
        step, kept = _direction(wide, held)
        new = param.astype(jnp.float32)
        new = new - _LEARNING_RATE * (step + _DECAY * new)
        return (new.astype(param.dtype), *kept)

    both = jax.tree.map(one, params, gradients, *slots)
    flat, tree = jax.tree.flatten(both, is_leaf=lambda x: isinstance(x, tuple))
    columns = [jax.tree.unflatten(tree, [row[i] for row in flat]) for i in range(1 + len(slots))]
    return columns[0], tuple(columns[1:])


def _direction(
    gradient: jax.Array, held: tuple[jax.Array, ...]
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """AdamW (arXiv 1711.05101) with two slots, momentum with one, none without."""
    if not held:
        return gradient, ()
    first = _FIRST * held[0].astype(jnp.float32) + (1 - _FIRST) * gradient
    if len(held) == 1:
        return first, (first.astype(held[0].dtype),)
    second = _SECOND * held[1].astype(jnp.float32) + (1 - _SECOND) * gradient * gradient
    step = first / (jnp.sqrt(second) + _EPSILON)
    rest = tuple(slot for slot in held[2:])
    return step, (first.astype(held[0].dtype), second.astype(held[1].dtype), *rest)
