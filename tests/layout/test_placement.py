from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.layout.placement import Placement, place
from prompts_agent.layout.table import LayoutTable


def placed(hardware: str, *layouts: Layout) -> Placement:
    return place(LayoutTable.of(layouts), parse_topology(hardware))


def row(placement: Placement, axis: Axis, index: int = 0) -> tuple[float, int, bool, float]:
    names = ("link_bandwidth_bytes_per_s", "hops", "crosses", "network_bandwidth_bytes_per_s")
    return tuple(placement.column(name, axis)[index].item() for name in names)  # type: ignore[return-value]


def test_multislice_tpu() -> None:
    mesh = Mesh.model_validate({"fsdp": {"ici": 16, "dcn": 2}, "tensor": 16})
    placement = placed("2*v5e:16x16", Layout(mesh=mesh))
    # 6.4 Tb/s a pod of 256 chips is 3.125 GB/s a chip.
    assert row(placement, Axis.FSDP) == (90e9, 8, True, 3.125e9)
    assert row(placement, Axis.TENSOR) == (90e9, 8, False, math.inf)
    assert row(placement, Axis.DATA) == (math.inf, 0, False, math.inf)
    assert placement.whole.all()


def test_gpu_domain_and_network() -> None:
    mesh = Mesh.model_validate({"tensor": 8, "data": {"ici": 1, "dcn": 8}})
    placement = placed("h100:8x8", Layout(mesh=mesh))
    assert row(placement, Axis.TENSOR) == (450e9, 1, False, math.inf)
    assert row(placement, Axis.DATA) == (math.inf, 0, True, 50e9)


def test_domain_without_a_switch_gives_a_group_its_own_links() -> None:
    # MI300X: seven links of 64 GB/s, one to each peer.
    placement = placed("mi300x:1x8", Layout(mesh=Mesh.of(data=4, tensor=2)))
    assert row(placement, Axis.TENSOR)[0] == 64e9
    assert row(placement, Axis.DATA)[0] == 3 * 64e9
    assert row(placed("mi300x:1x8", Layout(mesh=Mesh.of(tensor=8))), Axis.TENSOR)[0] == 448e9


def test_expert_axis_that_divides_lies_over_the_innermost_ranks() -> None:
    mesh = Mesh.of(fsdp=16, tensor=16, expert=16)
    placement = placed("v5e:16x16", Layout(mesh=mesh, expert_divides=True))
    assert row(placement, Axis.EXPERT) == row(placement, Axis.TENSOR) == (90e9, 8, False, math.inf)
    assert row(placement, Axis.FSDP)[0] == 90e9


def test_a_mesh_that_does_not_fit_has_no_figure() -> None:
    placement = placed("v5e:4x4", Layout(mesh=Mesh.of(tensor=3)), Layout(mesh=Mesh.of(tensor=16)))
    assert math.isnan(row(placement, Axis.TENSOR)[0])
    assert row(placement, Axis.TENSOR, 1)[0] == 90e9


@given(st.permutations([1, 2, 4, 8, 4]), st.integers(0, 5))
def test_every_row_is_placed_as_if_alone(sizes: list[int], hole: int) -> None:
    degrees = dict(zip(Axis, [*sizes[:hole], 1, *sizes[hole:]], strict=True))
    layouts = [
        Layout(mesh=Mesh.of(**{a.value: n for a, n in degrees.items()})),
        Layout(mesh=Mesh.of(tensor=256)),
        Layout(mesh=Mesh.of(data=16, context=16)),
    ]
    together = placed("v5p:4x8x8", *layouts)
    alone = placed("v5p:4x8x8", layouts[0])
    assert np.array_equal(together.link_bandwidth_bytes_per_s[:1], alone.link_bandwidth_bytes_per_s)
    assert np.isfinite(alone.link_bandwidth_bytes_per_s[0][alone.hops[0] > 0]).all()


def test_empty_table() -> None:
    assert len(placed("v5e:4x4")) == 0
