"""Links: the bandwidth and latency of every axis of every layout, as collectives see them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Constants
from prompts_agent.hardware.chip import Chip, Domain
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.placement import place
from prompts_agent.layout.table import LayoutTable

__all__ = ["Links", "links"]

FloatColumn = NDArray[np.float64]
BoolColumn = NDArray[np.bool_]

# Where a chip's data sheet names no network: one 100 Gb/s adapter a device.
_UNKNOWN_NETWORK_BYTES_PER_S = 12.5e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Columns per axis, float64[n, 6], axes in the order of `Axis`."""

    bandwidth_bytes_per_s: FloatColumn
    """What a collective over the axis moves per device inside a fast domain, one way."""
    hops: FloatColumn
    """Steps to the farthest device of the group inside the domain."""
    inside: FloatColumn
    """Ranks inside the domain."""
    across: FloatColumn
    """Domains that the axis spans."""
    network_bandwidth_bytes_per_s: FloatColumn
    """What one device sends across domains, one way."""
    hop_latency_s: float
    network_latency_s: float
    switched: bool
    """Any rank reaches any other at full rate (NVLink); a torus forwards through neighbours."""

    def of(self, axis: Axis) -> tuple[FloatColumn, ...]:
        """(bandwidth, hops, inside, across, network bandwidth) of one axis, float64[n] each."""
        k = list(Axis).index(axis)
        grids = (
            self.bandwidth_bytes_per_s,
            self.hops,
            self.inside,
            self.across,
            self.network_bandwidth_bytes_per_s,
        )
        return tuple(grid[:, k] for grid in grids)

    def only_where(self, axis: Axis, keep: BoolColumn) -> Links:
        """The same, with `axis` of size 1 in the rows where `keep` is false."""
        k = list(Axis).index(axis)
        inside, across = self.inside.copy(), self.across.copy()
        inside[~keep, k] = 1.0
        across[~keep, k] = 1.0
        return replace(self, inside=inside, across=across)


def links(table: LayoutTable, topology: Topology, chip: Chip, constants: Constants) -> Links:
    """The links of every row on `topology`: data-sheet bandwidth × the calibrated share."""
    placement = place(table, topology)
    fast = placement.link_bandwidth_bytes_per_s * constants.link_efficiency
    network = np.nan_to_num(
        placement.network_bandwidth_bytes_per_s,
        nan=_UNKNOWN_NETWORK_BYTES_PER_S,
        posinf=np.inf,
    )
    switched = isinstance(chip.link, Domain)
    return Links(
        bandwidth_bytes_per_s=np.where(np.isnan(fast), np.inf, fast),
        hops=placement.hops.astype(np.float64),
        inside=table.ici.astype(np.float64),
        across=table.dcn.astype(np.float64),
        network_bandwidth_bytes_per_s=network * constants.network_efficiency,
        hop_latency_s=constants.hop_latency_s,
        network_latency_s=constants.network_latency_s,
        switched=switched,
    )
