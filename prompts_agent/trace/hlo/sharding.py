"""How a parameter is cut over devices: tiles along each dim and the copies of each shard."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

from prompts_agent.trace.hlo.groups import axis_refs
from prompts_agent.trace.hlo.partition import tile_cuts

__all__ = ["Sharding", "parse_sharding", "sharding_from_proto"]

_REPLICATED, _MAXIMAL, _OTHER = 0, 1, 3  # xla_data.proto, OpSharding.Type


@dataclass(frozen=True, slots=True)
class Sharding:
    """`tiles[i]` shards along dim i, none at all where every device holds the whole array.

    `replication` is on how many devices each shard lies, None where the annotation does not say.
    """

    tiles: tuple[int, ...] = ()
    replication: int | None = None
    mesh: tuple[tuple[str, int], ...] | None = None
    cuts: frozenset[int] = frozenset()
    """Where it cuts the device order (see `partition`); empty where nothing is tiled."""

    def global_dims(self, local_dims: tuple[int, ...]) -> tuple[int, ...]:
        """Dims before partitioning; exact where the tiles divide them."""
        tiles = self.tiles_of(len(local_dims))
        return tuple(dim * tile for dim, tile in zip(local_dims, tiles, strict=True))

    def tiles_of(self, rank: int) -> tuple[int, ...]:
        """Tiles padded with 1 to `rank` dims."""
        return (*self.tiles, *[1] * (rank - len(self.tiles)))[:rank]


def sharding_from_proto(proto: Any) -> Sharding | None:
    """The record of an `xla.OpSharding`; None for tuples, manual and unknown ones."""
    if proto.HasField("named_sharding") and proto.named_sharding.HasField("mesh"):
        return _named(proto.named_sharding)
    if proto.type == _REPLICATED:
        return Sharding()
    if proto.type == _MAXIMAL:
        return Sharding(replication=1)
    if proto.type != _OTHER:
        return None
    dims = list(proto.tile_assignment_dimensions)
    extra = 1 if proto.replicate_on_last_tile_dim else len(proto.last_tile_dims)
    kinds = [_REPLICATED] if proto.replicate_on_last_tile_dim else list(proto.last_tile_dims)
    last = dims[len(dims) - extra :]
    copies = prod(size for size, kind in zip(last, kinds, strict=True) if kind == _REPLICATED)
    cuts = tile_cuts(
        tuple(dims),
        tuple(proto.iota_reshape_dims),
        tuple(proto.iota_transpose_perm),
        tuple(proto.tile_assignment_devices),
    )
    return Sharding(tuple(dims[: len(dims) - extra]), copies, cuts=cuts)


def _named(proto: Any) -> Sharding:
    mesh = tuple((axis.name, axis.size) for axis in proto.mesh.axes)

    def span(refs: Any) -> int:
        return prod(cut[1] if cut else mesh[axis][1] for axis, cut in axis_refs(refs))

    tiles = tuple(span(dim.axes) for dim in proto.dim_shardings)
    held_apart = span(proto.manual_axes) * span(proto.unreduced_axes)
    devices = prod(size for _, size in mesh)
    return Sharding(tiles, devices // (prod(tiles) * held_apart), mesh)


_DEVICES = re.compile(r"devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?)?([\d,]*)")
_LAST_DIMS = re.compile(r"last_tile_dims=\{([^}]*)\}")


def parse_sharding(text: str) -> Sharding | None:
    """The value of `sharding=`: `{devices=[1,8,4]<=[4,8]T(1,0) last_tile_dim_replicate}`."""
    tiled = _DEVICES.search(text)
    if tiled is None:
        if "replicated}" in text:
            return Sharding()
        return Sharding(replication=1) if "maximal" in text else None
    dims, reshape, perm, listed = (
        tuple(int(number) for number in (part or "").split(",") if number)
        for part in tiled.groups()
    )
    cuts = tile_cuts(dims, reshape, perm, listed)
    if "last_tile_dim_replicate" in text:
        return Sharding(dims[:-1], dims[-1], cuts=cuts)
    kinds_text = _LAST_DIMS.search(text)
    kinds = [kind.strip() for kind in kinds_text[1].split(",")] if kinds_text else []
    tiles, last = dims[: len(dims) - len(kinds)], dims[len(dims) - len(kinds) :]
    copies = prod(size for size, kind in zip(last, kinds, strict=True) if kind == "replicated")
    return Sharding(tiles, copies, cuts=cuts)
