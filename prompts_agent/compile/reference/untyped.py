"""The calls of jax that have no types, each with the type that it has."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec

__all__ = [
    "abstract", "exchanged", "held", "named", "partition", "scattered", "summed", "varying",
]  # fmt: skip


def partition(*entries: Any) -> PartitionSpec:
    """`PartitionSpec(*entries)`."""
    make: Any = PartitionSpec
    spec: PartitionSpec = make(*entries)
    return spec


def abstract(shape: tuple[int, ...], kind: np.dtype, sharding: Any = None) -> jax.ShapeDtypeStruct:
    """An array that is not there."""
    make: Any = jax.ShapeDtypeStruct
    array: jax.ShapeDtypeStruct = make(shape, kind, sharding=sharding)
    return array


def held(x: jax.Array, sharding: NamedSharding) -> jax.Array:
    """`x`, constrained to a sharding."""
    constrain: Any = lax.with_sharding_constraint
    found: jax.Array = constrain(x, sharding)
    return found


def named(x: jax.Array, name: str) -> jax.Array:
    """`x` under a name that remat policies know."""
    mark: Any = checkpoint_name
    found: jax.Array = mark(x, name)
    return found


def summed(x: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """The sum of `x` over the devices along these axes."""
    call: Any = lax.psum
    found: jax.Array = call(x, axes) if axes else x
    return found


def scattered(x: jax.Array, axes: tuple[str, ...], dim: int) -> jax.Array:
    """The same, of which each device keeps its part of `dim`."""
    call: Any = lax.psum_scatter
    found: jax.Array = call(x, axes, scatter_dimension=dim, tiled=True) if axes else x
    return found


def exchanged(x: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """An all-to-all: the parts of the first dim, one for each device, in the order of senders."""
    call: Any = lax.all_to_all
    found: jax.Array = call(x, axes, split_axis=0, concat_axis=0, tiled=True) if axes else x
    return found


def varying(x: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """`x`, said to differ along `axes` too, so that its gradient is summed over them."""
    call: Any = lax.pcast
    found: jax.Array = call(x, axes, to="varying") if axes else x
    return found
