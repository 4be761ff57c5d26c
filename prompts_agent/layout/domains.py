"""Fast domains of a topology: how many devices share quick links, and how many such groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.mesh import Axis, Mesh

__all__ = [
    "DIVIDED_BY_EXPERT",
    "EXPERT",
    "domain_size",
    "domains",
    "fill",
    "fill_with_divided",
    "mesh_over_domains",
]

IntGrid = NDArray[np.int64]

EXPERT = list(Axis).index(Axis.EXPERT)
"""Column of the expert axis."""
DIVIDED_BY_EXPERT = tuple(
    list(Axis).index(axis) for axis in (Axis.DATA, Axis.FSDP, Axis.CONTEXT, Axis.TENSOR)
)
"""Columns of the axes whose ranks an expert axis divides (`Layout.expert_divides`)."""


def domain_size(topology: Topology) -> int:
    """Devices of one fast domain, such that the job fills a whole number of them.

    A TPU slice; on GPUs the NVLink domain, or the largest equal share of it. 256 devices of a
    chip with domains of 72 use 64 in each of four, as people run them; nodes are never cut.
    """
    devices = topology.devices
    # In a 2-D torus this is a dim, of which a slice is a multiple: the first size is then taken.
    node = topology.shape[1] if len(topology.shape) == 2 else 1
    for size in range(min(topology.domain_devices, devices), 1, -1):
        if devices % size == 0 and (size % node == 0 or node % size == 0):
            return size
    return 1


def domains(topology: Topology) -> int:
    """Number of fast domains that the job spans."""
    return topology.devices // domain_size(topology)


def fill(degrees: IntGrid, domain_devices: int) -> tuple[IntGrid, IntGrid]:
    """Split degrees (n, 6) into ici and dcn parts such that inner axes fill the fast domain first.

    This is what a launcher does that numbers ranks with the innermost axis fastest. Each axis, from
    tensor outwards, takes as much of the domain as divides it:

    - tensor 8, data 16 over domains of 8: tensor ici 8, data dcn 16;
    - fsdp 512 over domains of 256: fsdp ici 256 × dcn 2;
    - tensor 4, data 4, pipeline 2 over domains of 8: tensor ici 4, data ici 2 × dcn 2, pipeline
      dcn 2.

    Degrees that do not multiply to whole domains keep their product; legality then refuses them.
    """
    ici = np.ones_like(degrees)
    free = np.full(len(degrees), domain_devices, dtype=np.int64)
    for axis in reversed(range(degrees.shape[1])):
        ici[:, axis] = np.gcd(degrees[:, axis], free)
        free //= ici[:, axis]
    return ici, degrees // ici


def mesh_over_domains(
    degrees: Mapping[Axis, int], domain_devices: int, *, expert_divides: bool = False
) -> Mesh:
    """The mesh of these degrees, split as `fill` does: people write degrees, not splits.

    An expert axis that divides the data × fsdp × context × tensor ranks lies over the innermost of
    them, and takes no place of its own.
    """
    row = np.array([[degrees.get(axis, 1) for axis in Axis]], dtype=np.int64)
    if expert_divides:
        ici, dcn = fill_with_divided(row, domain_devices)
    else:
        ici, dcn = fill(row, domain_devices)
    return Mesh.model_validate(
        {
            a.value: {"ici": int(i), "dcn": int(d)}
            for a, i, d in zip(Axis, ici[0], dcn[0], strict=True)
        }
    )


def fill_with_divided(degrees: IntGrid, domain_devices: int) -> tuple[IntGrid, IntGrid]:
    """`fill` where the expert axis divides other axes: it is laid over their ranks afterwards."""
    counted = degrees.copy()
    counted[:, EXPERT] = 1
    ici, dcn = fill(counted, domain_devices)
    ranks = np.prod(ici[:, DIVIDED_BY_EXPERT], axis=1)
    ici[:, EXPERT] = np.gcd(degrees[:, EXPERT], ranks)
    dcn[:, EXPERT] = degrees[:, EXPERT] // ici[:, EXPERT]
    return ici, dcn
