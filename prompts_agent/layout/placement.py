"""Placement: over which links each axis of each layout runs, and how fast they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.chip import Domain
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.layout.torus import Torus, torus_of

__all__ = ["Placement", "place"]

FloatGrid = NDArray[np.float64]
IntGrid = NDArray[np.int64]
BoolGrid = NDArray[np.bool_]

_AXES = tuple(Axis)
_EXPERT = _AXES.index(Axis.EXPERT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Columns of shape (n, 6), axes in the order of `Axis`.

    A size of 1 moves nothing and has infinite bandwidth and no hops; nan is an unknown figure, or
    an axis that does not fit the slice.
    """

    link_bandwidth_bytes_per_s: FloatGrid
    """Inside the domain, one way, per device, of a ring or torus collective over the axis's ici
    part: an all-gather of B bytes over g devices takes B × (g − 1) / g ÷ this, plus latency."""
    hops: IntGrid
    """Steps from a device to the farthest of its group inside the domain: the latency's factor."""
    crosses: BoolGrid
    """A part of the axis runs over the network between domains."""
    network_bandwidth_bytes_per_s: FloatGrid
    """One way, per device, of the dcn part; infinite where the axis does not cross."""
    whole: BoolGrid
    """The axis takes whole dims of the torus (always True on GPUs)."""

    def __len__(self) -> int:
        return int(self.hops.shape[0])

    def column(self, name: str, axis: Axis) -> NDArray[np.float64 | np.int64 | np.bool_]:
        """Column `name` of one axis, shape (n,)."""
        grid: NDArray[np.float64 | np.int64 | np.bool_] = getattr(self, name)
        return grid[:, _AXES.index(axis)]


def place(table: LayoutTable, topology: Topology) -> Placement:
    """Lay the axes of every layout onto the links of `topology`.

    Axes take dims innermost first (tensor, context, expert, fsdp, data, pipeline), as every
    launcher orders ranks. An expert axis that divides other axes lies over the innermost ranks.
    """
    torus = torus_of(topology)
    # Meshes repeat for every choice of knobs: each distinct one is placed once.
    keys = np.concatenate([table.ici, table.expert_divides[:, None]], axis=1)
    distinct, inverse = _distinct(keys)
    if torus is None:
        bandwidth, hops, whole = _in_domain(distinct[:, :6], topology)
    else:
        bandwidth, hops, whole = _on_torus(distinct[:, :6], distinct[:, 6] > 0, torus)
    network = find_chip(topology.chip).network_bandwidth_bytes_per_s
    crosses = table.dcn > 1
    return Placement(
        link_bandwidth_bytes_per_s=bandwidth[inverse],
        hops=hops[inverse],
        crosses=crosses,
        network_bandwidth_bytes_per_s=np.where(
            crosses, np.nan if network is None else network, np.inf
        ),
        whole=whole[inverse],
    )


def _distinct(keys: IntGrid) -> tuple[IntGrid, IntGrid]:
    """Distinct rows and each row's index among them; one integer a row sorts faster than seven."""
    weights = np.ones(keys.shape[1], dtype=np.int64)
    spread = keys.max(axis=0, initial=0) + 1
    weights[1:] = np.cumprod(spread[:-1])
    _, first, inverse = np.unique(keys @ weights, return_index=True, return_inverse=True)
    return keys[first], inverse


def _in_domain(ici: IntGrid, topology: Topology) -> tuple[FloatGrid, IntGrid, BoolGrid]:
    """GPUs: a switch gives every group its full rate, whatever the group.

    Fully connected domains without a switch (Infinity Fabric: one link to each peer) give a group
    of k devices only the k − 1 links that lie within it: 2 of 8 MI300X have 64 of their 448 GB/s.
    """
    link = find_chip(topology.chip).link
    full = link.bandwidth_bytes_per_s if isinstance(link, Domain) else np.nan
    rate = np.full(ici.shape, full)
    if isinstance(link, Domain) and "fully connected" in link.technology:
        rate *= np.minimum(1.0, (ici - 1) / (link.devices - 1))
    used = ici > 1
    return np.where(used, rate, np.inf), used.astype(np.int64), np.ones(ici.shape, dtype=np.bool_)


def _on_torus(ici: IntGrid, divides: BoolGrid, torus: Torus) -> tuple[FloatGrid, IntGrid, BoolGrid]:
    """TPUs: axis by axis, from the innermost. States are few, so each is worked out once.

    The state is what inner axes took of each dim: on 16 x 16 there are 25, on 8 x 8 x 8 there are
    64, and an axis has at most a dozen sizes. The rows then only look up.
    """
    bandwidth = np.full(ici.shape, np.inf)
    hops = np.zeros(ici.shape, dtype=np.int64)
    whole = np.ones(ici.shape, dtype=np.bool_)
    start = (1,) * len(torus.dims)
    states: list[tuple[int, ...] | None] = [start]
    state = np.zeros(len(ici), dtype=np.int64)
    for axis in reversed(range(len(_AXES))):
        size = ici[:, axis]
        apart = divides if axis == _EXPERT else np.zeros(len(ici), dtype=np.bool_)
        # The expert axis that divides the others starts afresh and leaves their state alone.
        begin = np.where(apart, 0, state)
        pairs, where = _distinct(np.stack([begin, size], axis=1))
        shares = [_share(torus, states[int(s)], int(n)) for s, n in pairs]
        bandwidth[:, axis] = np.array([s[0] for s in shares])[where]
        hops[:, axis] = np.array([s[1] for s in shares], dtype=np.int64)[where]
        whole[:, axis] = np.array([s[2] for s in shares], dtype=np.bool_)[where]
        following = [_index(states, s[3]) for s in shares]
        state = np.where(apart, state, np.array(following, dtype=np.int64)[where])
    return bandwidth, hops, whole


def _share(
    torus: Torus, taken: tuple[int, ...] | None, size: int
) -> tuple[float, int, bool, tuple[int, ...] | None]:
    """Bandwidth, hops, whether dims stay whole, and what is taken afterwards (None: misfit)."""
    share = None if taken is None else torus.take(taken, size)
    if taken is None or share is None:
        return np.nan, 0, False, None
    after = tuple(t * f for t, f in zip(taken, share.factors, strict=True))
    return share.bandwidth_bytes_per_s, share.hops, share.whole, after


def _index(states: list[tuple[int, ...] | None], state: tuple[int, ...] | None) -> int:
    if state not in states:
        states.append(state)
    return states.index(state)
