"""The mesh in use: its axes by name where a program keeps them, else inferred from its groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import prod

from prompts_agent.trace.hlo.groups import DeviceGroups, Groups, mesh_groups
from prompts_agent.trace.hlo.partition import partition_cuts
from prompts_agent.trace.hlo.sharding import Sharding

__all__ = ["Mesh", "find_mesh", "has_names", "infer_mesh"]

# Partitions over more axes than this are not looked for: no collective of a real program spans
# them, and the subsets double with each axis.
_MAX_SPANNED = 5
_PLACEHOLDER = re.compile(r"axis_\d+")


def _canonical(groups: Iterable[Iterable[int]]) -> frozenset[frozenset[int]]:
    return frozenset(frozenset(group) for group in groups)


@dataclass(frozen=True, slots=True)
class Mesh:
    """Axes, outermost first: the last one has stride 1 in device order."""

    axes: tuple[tuple[str, int], ...]
    named: bool
    """Whether the names are the program's own."""
    devices: tuple[int, ...] | None = None
    """Device of each mesh position, None where it is 0, 1, 2…"""
    _known: dict[frozenset[frozenset[int]], str | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def size(self) -> int:
        """Number of devices."""
        return prod(size for _, size in self.axes)

    def axis_of(self, groups: DeviceGroups) -> str | None:
        """The axis, or "+"-joined axes, that the groups span; None where no subset of axes fits.

        Groups of one device span nothing. Groups smaller than an axis (a permute between some
        neighbours, a reshard) span the smallest set of axes that holds each of them.
        """
        if groups.axes and groups.mesh == self.axes:
            return "+".join(dict.fromkeys(groups.axes))
        if not groups.groups:
            return "+".join(name for name, size in self.axes if size > 1) or None
        key = _canonical(groups.groups)
        if key not in self._known:
            self._known[key] = self._search(key)
        return self._known[key]

    def _search(self, wanted: frozenset[frozenset[int]]) -> str | None:
        largest = max(map(len, wanted))
        if largest < 2:
            return None
        candidates = [k for k, (_, size) in enumerate(self.axes) if size > 1]
        for count in range(1, min(len(candidates), _MAX_SPANNED) + 1):
            fits: list[tuple[int, str]] = []
            for subset in combinations(candidates, count):
                spanned = prod(self.axes[k][1] for k in subset)
                if spanned < largest:
                    continue
                partition = self._partition(subset)
                leader = {device: number for number, g in enumerate(partition) for device in g}
                if all(len({leader.get(d) for d in group}) == 1 for group in wanted):
                    fits.append((spanned, "+".join(self.axes[k][0] for k in subset)))
            if fits:
                return min(fits)[1]
        return None

    def _partition(self, subset: tuple[int, ...]) -> Groups:
        sizes = [size for _, size in self.axes]
        return mesh_groups(sizes, [(k, None) for k in subset], self.devices)


def find_mesh(
    groups: Iterable[DeviceGroups],
    shardings: Iterable[Sharding],
    device_count: int | None,
) -> Mesh | None:
    """The mesh that most groups (or else shardings) name; otherwise the one that they imply."""
    groups, shardings = list(groups), list(shardings)
    named = Counter(g.mesh for g in groups if g.mesh and has_names(g.mesh))
    named = named or Counter(s.mesh for s in shardings if s.mesh and has_names(s.mesh))
    if named:
        # Of equally frequent meshes the one with most axes: it tells most.
        mesh = max(named, key=lambda m: (named[m], len(m), m))
        order = next((g.order for g in groups if g.mesh == mesh), None)
        return Mesh(mesh, named=True, devices=order)
    return infer_mesh([g.groups for g in groups], [s.cuts for s in shardings], device_count)


def has_names(mesh: tuple[tuple[str, int], ...]) -> bool:
    """Whether anybody named it: XLA invents axis_0, axis_1… for what it derives itself."""
    return not all(_PLACEHOLDER.fullmatch(name) for name, _ in mesh)


def infer_mesh(
    partitions: Iterable[Groups],
    sharding_cuts: Iterable[frozenset[int]],
    device_count: int | None,
) -> Mesh | None:
    """The mesh that parameters are laid out over, else the one that collectives span.

    Shardings {1,4,8} on 8 devices are axis0 of size 2 and axis1 of size 4. Parameters come first,
    because the partitioner's resharding cuts an axis where the user did not. Where they say
    nothing (all replicated), the partitions of collectives cut; irregular ones (permutes along a
    part of an axis) are skipped.
    """
    partitions = [p for p in partitions if p and max(map(len, p)) > 1]
    if device_count is None:
        device_count = max((max(map(max, p)) + 1 for p in partitions), default=0)
    if device_count < 2:
        return None
    whole = {1, device_count}
    cuts = whole.union(*sharding_cuts)
    if cuts == whole or not _nested(cuts):
        cuts = whole.union(*(partition_cuts(p, device_count) for p in set(partitions)))
    if not _nested(cuts):
        return None
    ordered = sorted(cuts)
    sizes = [high // low for low, high in pairwise(ordered)][::-1]
    return Mesh(tuple((f"axis{k}", size) for k, size in enumerate(sizes)), named=False)


def _nested(cuts: set[int]) -> bool:
    return not any(high % low for low, high in pairwise(sorted(cuts)))
