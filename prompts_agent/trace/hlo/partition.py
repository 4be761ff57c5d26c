"""Where a regular partition of the devices cuts the device order: what mesh axes are made of."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import prod

from prompts_agent.trace.hlo.groups import Groups, iota_order

__all__ = ["partition_cuts", "tile_cuts"]


def partition_cuts(groups: Groups, device_count: int) -> frozenset[int]:
    """Cuts of a partition of 0 … device_count-1; empty where it is not regular.

    Groups {0,4},{1,5},{2,6},{3,7} have stride 4 and size 2: they cut the order at 4 and at 8.
    Regular means: all groups are the first one shifted, and its offsets are a product of strides.
    """
    partition = {frozenset(group) for group in groups}
    first = min(partition, key=min)
    offsets = sorted(device - min(first) for device in first)
    runs = _strides(offsets)
    if runs is None or len(partition) * len(offsets) != device_count:
        return frozenset()
    shifted = (sorted(device - min(group) for device in group) for group in partition)
    if any(other != offsets for other in shifted):
        return frozenset()
    return frozenset(cut for stride, size in runs for cut in (stride, stride * size))


def _strides(offsets: list[int]) -> list[tuple[int, int]] | None:
    """Mixed-radix form of sorted offsets: 0 1 2 3 8 9 10 11 is [(1, 4), (8, 2)]."""
    runs: list[tuple[int, int]] = []
    covered = 1
    while covered < len(offsets):
        stride = offsets[covered]
        size = 1
        while size * covered < len(offsets) and offsets[size * covered] == size * stride:
            size += 1
        block = offsets[:covered]
        if offsets[: size * covered] != [k * stride + o for k in range(size) for o in block]:
            return None
        runs.append((stride, size))
        covered *= size
    return runs if covered == len(offsets) else None


@lru_cache(maxsize=1024)
def tile_cuts(
    tiles: tuple[int, ...],
    reshape_dims: tuple[int, ...],
    transpose_perm: tuple[int, ...],
    devices: tuple[int, ...] = (),
) -> frozenset[int]:
    """Cuts that a tiled sharding implies: one partition for each dim of its tile assignment.

    `[1,8,4]<=[4,8]T(1,0)` cuts 32 devices at 1, 8 and 32: neighbours hold different tiles, every
    eighth device a copy. `devices` is the explicit order of the older form.
    """
    order = list(devices) or iota_order(reshape_dims, transpose_perm)
    if len(order) != prod(tiles):
        return frozenset()
    cuts: set[int] = set()
    stride = len(order)
    for size in tiles:
        stride //= size
        if size > 1:
            groups = _along(order, stride, size)
            cuts |= partition_cuts(groups, len(order))
    return frozenset(cuts)


def _along(order: list[int], stride: int, size: int) -> Groups:
    starts: Iterable[int] = (
        block + inner for block in range(0, len(order), stride * size) for inner in range(stride)
    )
    return tuple(tuple(order[start + k * stride] for k in range(size)) for start in starts)
