"""Rows: tokens put where their experts are, and back, by gathers in both directions.

A group (a rank, or an expert) has places in a row; `Places` says which row a place takes and at
which place a row went. Each gather's gradient is the other one, so that no scatter is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["Places", "collected", "placed", "places", "taken"]


@dataclass(frozen=True, slots=True)
class Places:
    """`source` [places]: the row at each place, `rows` where it is empty. `place` [rows]: where
    each row went, `places` where it has none. `sizes` [groups]: rows of each group.
    """

    source: jax.Array
    place: jax.Array
    sizes: jax.Array


def places(group: jax.Array, groups: int, room: int | None) -> Places:
    """Of rows with numbers `group` [rows]; `groups` is the number of a row that goes nowhere.

    With `room` every group has as many places and the rows beyond them go nowhere; without, groups
    lie one behind the other in as many places as there are rows.
    """
    rows = group.shape[0]
    order = jnp.argsort(group, stable=True).astype(jnp.int32)
    rank = jnp.argsort(order).astype(jnp.int32)
    sizes = jnp.sum(group[:, None] == jnp.arange(groups)[None], axis=0, dtype=jnp.int32)
    if room is None:
        gone = group == groups
        return Places(jnp.where(gone[order], rows, order), jnp.where(gone, rows, rank), sizes)
    starts = jnp.cumsum(sizes) - sizes
    at = jnp.arange(room, dtype=jnp.int32)
    index = jnp.minimum(starts[:, None] + at[None], rows - 1)
    source = jnp.where(at[None] < sizes[:, None], order[index], rows).reshape(-1)
    seat = rank - jnp.append(starts, 0)[group]
    sits = (group < groups) & (seat < room)
    return Places(source, jnp.where(sits, group * room + seat, groups * room), sizes)


def taken(x: jax.Array, index: jax.Array) -> jax.Array:
    """Rows of x [n, …] by number; zeros for numbers beyond them."""
    found: jax.Array = jnp.take(x, index, axis=0, mode="fill", fill_value=0)
    return found


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def placed(x: jax.Array, source: jax.Array, place: jax.Array, each: int) -> jax.Array:
    """X [tokens, d] at its places, [places, d]; a token has `each` rows, one behind the other."""
    del place
    return taken(x, source // each)


def _placed_forward(x: jax.Array, source: jax.Array, place: jax.Array, each: int) -> Any:
    return placed(x, source, place, each), (source, place)


def _placed_backward(each: int, held: Any, gradient: jax.Array) -> Any:
    _, place = held
    rows = taken(gradient, place).reshape(-1, each, gradient.shape[-1])
    return rows.sum(axis=1), None, None


placed.defvjp(_placed_forward, _placed_backward)


@jax.custom_vjp
def collected(y: jax.Array, source: jax.Array, place: jax.Array) -> jax.Array:
    """Y [places, d] back in the order of the rows, [rows, d]."""
    del source
    return taken(y, place)


def _collected_forward(y: jax.Array, source: jax.Array, place: jax.Array) -> Any:
    return collected(y, source, place), source


def _collected_backward(source: jax.Array, gradient: jax.Array) -> Any:
    return taken(gradient, source), None, None


collected.defvjp(_collected_forward, _collected_backward)
