"""Which links of a torus an axis gets: the dims it lies on, its bandwidth and its latency."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.chip import Torus as TorusLink
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.factorisations import divisors

__all__ = ["Share", "Torus", "torus_of"]


@dataclass(frozen=True, slots=True)
class Share:
    """What one axis gets: `factors[d]` devices along dim d, and what its collectives get."""

    factors: tuple[int, ...]
    bandwidth_bytes_per_s: float
    hops: int
    whole: bool
    """No dim is shared with another axis, so jax needs no `allow_split_physical_axes`."""


@dataclass(frozen=True)
class Torus:
    """The links of one slice, as dims of devices.

    On a chip with two devices the first dim is the pair on the chip (`pair`), which has its own
    link; jax counts it last, which differs only where other dims have two chips, and there jax
    orders devices by hand so that the pair is innermost.
    """

    dims: tuple[int, ...]
    wrap: tuple[bool, ...]
    link_bandwidth_bytes_per_s: float
    pair_bandwidth_bytes_per_s: float | None = None
    pair: bool = False
    _memo: dict[tuple[tuple[int, ...], int], Share | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    def take(self, taken: tuple[int, ...], size: int) -> Share | None:
        """The share of an axis of `size`, where inner axes already took `taken[d]` of each dim.

        None where no product of factors of the free dims has that size. Of the possible shares
        this is the one that jax's `create_device_mesh` picks, so that a prediction is about the
        devices that the job will really use:

        - whole dims first: on 4 x 4 x 8, sixteen is [4, 4, -], not [4, -, 4] of which the 8 is cut;
        - then many dims rather than few: four on 2 x 2 x 4 is [2, 2, -], not [-, -, 4];
        - then dims that an inner axis has cut already, and last the first dims: four on 16 x 16 is
          [4, -], a line of four.
        """
        key = (taken, size)
        if key not in self._memo:
            choices = list(self._choices(taken, size))
            best = max(choices, key=lambda factors: self._preference(factors, taken), default=None)
            self._memo[key] = None if best is None else self._share(best, taken)
        return self._memo[key]

    def _choices(self, taken: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
        free = [dim // used for dim, used in zip(self.dims, taken, strict=True)]
        options = [[d for d in divisors(n) if size % d == 0] for n in free]
        return (f for f in itertools.product(*options) if math.prod(f) == size)

    def _preference(self, factors: tuple[int, ...], taken: tuple[int, ...]) -> tuple[object, ...]:
        whole = [f for f, dim in zip(factors, self.dims, strict=True) if f == dim and f > 1]
        reused = [f for f, used in zip(factors, taken, strict=True) if used > 1]
        return math.prod(whole), len(whole), math.prod(reused), factors

    def _share(self, factors: tuple[int, ...], taken: tuple[int, ...]) -> Share:
        """Bandwidth is one way, per device, summed over the torus dims that the axis spans.

        A dim that the axis takes to its end and that wraps is a ring with two directions; else a
        line, where the second direction gains nothing. Devices that lie `taken` apart share the
        links between them with as many other groups, so they get that part of the link.

        Example, v5e (45 GB/s a link), 16 x 16: tensor 16 is a ring, 90 GB/s, 8 hops; tensor 4 is a
        line, 45 GB/s, 3 hops; fsdp 64 beside it is the rest of that dim (a ring of 4 at stride 4:
        90 / 4 = 22.5 GB/s) and the other dim (90 GB/s), 112.5 GB/s together.
        """
        first = 1 if self.pair else 0
        spans_pair = self.pair and factors[0] > 1
        bandwidth, hops = 0.0, 0
        for dim in range(first, len(self.dims)):
            count, stride = factors[dim], taken[dim]
            if count == 1:
                continue
            ring = self.wrap[dim] and count * stride == self.dims[dim]
            bandwidth += self.link_bandwidth_bytes_per_s * (2 if ring else 1) / stride
            hops += stride * (count // 2 if ring else count - 1)
        if self.pair and not spans_pair:
            # Both devices of a chip are in groups of their own and share the chip's links.
            bandwidth /= self.dims[0]
        if spans_pair:
            hops += 1
            bandwidth = bandwidth or (self.pair_bandwidth_bytes_per_s or math.nan)
        whole = all(f in (1, dim) for f, dim in zip(factors, self.dims, strict=True))
        return Share(factors, bandwidth or math.inf, hops, whole)


def torus_of(topology: Topology) -> Torus | None:
    """The torus of one slice; None for GPUs."""
    chip = find_chip(topology.chip)
    link = chip.link
    if not isinstance(link, TorusLink):
        return None
    pair = chip.devices_per_chip > 1
    return Torus(
        dims=(chip.devices_per_chip, *topology.shape) if pair else topology.shape,
        wrap=(False, *topology.wrap) if pair else topology.wrap,
        link_bandwidth_bytes_per_s=link.link_bandwidth_bytes_per_s,
        pair_bandwidth_bytes_per_s=link.sibling_bandwidth_bytes_per_s,
        pair=pair,
    )
