"""The calls of jax that have no types, each with the type that it has."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import NamedSharding, PartitionSpec

__all__ = ["abstract", "held", "named", "partition"]


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
