"""Transfers: which axes a collective runs over, and what it takes on the placed mesh.

The formulas and the links are the estimator's (`estimate.collectives`, `layout.placement`); only
which collectives there are comes from the compiled program.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from prompts_agent.compile.expert_axis import taken_ranks, without_expert_axis
from prompts_agent.estimate.calibration import Constants
from prompts_agent.estimate.collectives import all_gather_s, send_s
from prompts_agent.estimate.links import Links, links
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.chip import Domain
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.specs import ATTENTION_DATA, mesh_axes
from prompts_agent.layout.table import LayoutTable
from prompts_agent.trace.hlo.collectives import Collective
from prompts_agent.trace.hlo.mesh import Mesh

__all__ = ["LayoutTransfers", "Transfers", "UnplacedTransfers", "mesh_of"]

_ORDER: tuple[str, ...] = (
    *(axis.value for axis in Axis if axis is not Axis.TENSOR), ATTENTION_DATA, Axis.TENSOR.value
)  # fmt: skip


class Transfers(Protocol):
    """What collectives take somewhere."""

    def axis_of(self, collective: Collective) -> str | None:
        """The axis, or `+`-joined axes, that it runs over; None where its groups fit none."""

    def seconds(self, collective: Collective) -> float:
        """From its start to its end when nothing else uses the links."""


def mesh_of(layout: Layout) -> Mesh:
    """The mesh that the reference program is cut over, positions in jax's order."""
    used = mesh_axes(without_expert_axis(layout))
    return Mesh(tuple((name, used[name]) for name in _ORDER if name in used), named=True)


class LayoutTransfers:
    """Collectives of a program that is cut by a layout we know, on a topology."""

    def __init__(self, layout: Layout, topology: Topology, constants: Constants) -> None:
        self._exchanges = _exchanges(layout)
        layout = without_expert_axis(layout)
        table, chip = LayoutTable.of([layout]), find_chip(topology.chip)
        self._links = links(table, topology, chip, constants)
        self._mesh = mesh_of(layout)
        self._known: dict[tuple[str, int, str | None, int], float] = {}

    def axis_of(self, collective: Collective) -> str | None:
        """See `Transfers`. Tokens go over `expert` where that divides other axes' ranks."""
        size = collective.groups.size if collective.groups else None
        if collective.kind == "all-to-all" and size in self._exchanges:
            return Axis.EXPERT.value
        return self._spanned(collective)

    def _spanned(self, collective: Collective) -> str | None:
        return self._mesh.axis_of(collective.groups) if collective.groups else None

    def seconds(self, collective: Collective) -> float:
        """See `Transfers`. Groups that fit no axis are taken to run over all of them."""
        size = collective.groups.size if collective.groups else None
        size = size or self._mesh.size
        if size < 2:
            return 0.0
        axis = self._spanned(collective)
        key = (collective.kind, collective.bytes, axis, size)
        if key not in self._known:
            names = axis.split("+") if axis else [name for name, _ in self._mesh.axes]
            axes = tuple(dict.fromkeys(map(_placed, names)))
            self._known[key] = _seconds(self._links, collective, axes, size)
        return self._known[key]


def _exchanges(layout: Layout) -> tuple[int, ...]:
    """Between how many ranks tokens go where the expert axis divides others: in training all of
    the axis, in serving those of them that see other tokens.
    """
    taken = taken_ranks(layout)
    apart = [n for axis, n in taken.items() if axis not in (Axis.TENSOR.value, ATTENTION_DATA)]
    return tuple({math.prod(taken.values()), math.prod(apart)} - {1})


def _placed(name: str) -> Axis:
    """The axis of the layout that has the links: attention_data is a part of tensor."""
    return Axis.TENSOR if name == ATTENTION_DATA else Axis(name)


def _seconds(at: Links, collective: Collective, axes: tuple[Axis, ...], size: int) -> float:
    moved = np.array([float(collective.bytes)])
    whole = math.prod(float(_ranks(at, axis)[0]) for axis in axes)
    if collective.kind == "collective-permute":
        return max(float(send_s(at, axis, moved)[0]) for axis in axes)
    if collective.kind == "all-to-all":
        return _exchange_s(at, axes, moved, size)
    gather = float(all_gather_s(at, axes, moved)[0])
    if size < whole:
        # A part of an axis: the same links carry (n - 1) / n of fewer ranks.
        gather *= ((size - 1) / size) / ((whole - 1) / whole)
    return 2.0 * gather if collective.kind == "all-reduce" else gather


def _ranks(at: Links, axis: Axis) -> NDArray[np.float64]:
    _, _, inside, across, _ = at.of(axis)
    return np.asarray(inside * across)


def _exchange_s(at: Links, axes: tuple[Axis, ...], moved: NDArray[np.float64], size: int) -> float:
    """An all-to-all sends (n - 1) / n of what a rank holds; on a torus its busiest link carries
    n / 4 times as much as a switch's (see `estimate.collectives.expert_s`).
    """
    rate, hops, slow = 0.0, 0.0, 0.0
    for axis in axes:
        bandwidth, axis_hops, inside, across, network = at.of(axis)
        rate += float(bandwidth[0]) if inside[0] > 1.0 else 0.0
        hops += float(axis_hops[0])
        if across[0] > 1.0:
            slow += float((moved * (across - 1.0) / across / network)[0])
    detour = 1.0 if at.switched else max(size / 4.0, 1.0)
    fast = float(moved[0]) * detour * (size - 1) / size / rate if rate else 0.0
    return fast + slow + at.hop_latency_s * hops


class UnplacedTransfers:
    """Collectives of somebody's own program, whose mesh is known from its groups at most.

    Where its axes lie on the links is unknown: each is taken to be a ring over one dim of a torus,
    or to lie within one switch's domain where it is small enough.
    """

    def __init__(self, mesh: Mesh | None, topology: Topology, constants: Constants) -> None:
        self._mesh, self._constants = mesh, constants
        self._chip, self._devices = find_chip(topology.chip), topology.devices

    def axis_of(self, collective: Collective) -> str | None:
        """See `Transfers`."""
        known = self._mesh is not None and collective.groups is not None
        return self._mesh.axis_of(collective.groups) if known else None  # type: ignore[union-attr,arg-type]

    def seconds(self, collective: Collective) -> float:
        """See `Transfers`."""
        size = (collective.groups.size if collective.groups else None) or self._devices
        if size < 2:
            return 0.0
        link, constants = self._chip.link, self._constants
        if not isinstance(link, Domain):
            rate = 2.0 * link.link_bandwidth_bytes_per_s * constants.link_efficiency
        elif size <= link.devices:
            rate = link.bandwidth_bytes_per_s * constants.link_efficiency
        else:
            network = self._chip.network_bandwidth_bytes_per_s or 12.5e9
            rate = network * constants.network_efficiency
        times = 2.0 if collective.kind == "all-reduce" else 1.0
        share = 1.0 if collective.kind == "collective-permute" else (size - 1) / size
        return times * collective.bytes * share / rate + constants.hop_latency_s * size / 2
