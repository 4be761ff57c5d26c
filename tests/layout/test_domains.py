from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.domains import domain_size, domains, mesh_over_domains
from prompts_agent.layout.mesh import Axis


@pytest.mark.parametrize(
    ("hardware", "size", "count"),
    [
        ("v5e:16x16", 256, 1),
        ("4*v5e:16x16", 256, 4),
        ("v5p:2x2x1", 4, 1),
        ("tpu7x:2x2x1", 8, 1),  # two devices a chip
        ("h100:8x8", 8, 8),
        ("h100:2x4", 4, 2),
        ("gb200:18x4", 72, 1),
        # 256 GPUs do not fill racks of 72: four times 64, whole nodes of 4.
        ("gb200:64x4", 64, 4),
        # 108 = 3 × 36: 54 divides too, but would cut nodes of 4.
        ("gb200:27x4", 36, 3),
    ],
)
def test_domains(hardware: str, size: int, count: int) -> None:
    topology = parse_topology(hardware)
    assert (domain_size(topology), domains(topology)) == (size, count)


def test_inner_axes_fill_the_domain_first() -> None:
    mesh = mesh_over_domains({Axis.TENSOR: 4, Axis.DATA: 4, Axis.PIPELINE: 2}, 8)
    split = {axis: (mesh[axis].ici, mesh[axis].dcn) for axis in mesh.used()}
    assert split == {Axis.PIPELINE: (1, 2), Axis.DATA: (2, 2), Axis.TENSOR: (4, 1)}


def test_an_expert_axis_that_divides_takes_no_place() -> None:
    # Megatron on two nodes of 8: tensor 2, data 8, expert 16 over all 16 ranks.
    degrees = {Axis.TENSOR: 2, Axis.DATA: 8, Axis.EXPERT: 16}
    mesh = mesh_over_domains(degrees, 8, expert_divides=True)
    split = {axis: (mesh[axis].ici, mesh[axis].dcn) for axis in mesh.used()}
    assert split == {Axis.DATA: (4, 2), Axis.EXPERT: (8, 2), Axis.TENSOR: (2, 1)}


@given(
    st.dictionaries(st.sampled_from(list(Axis)), st.sampled_from([1, 2, 3, 4, 8])),
    st.sampled_from([1, 2, 4, 8, 16, 72]),
)
def test_splits_keep_degrees(degrees: dict[Axis, int], domain: int) -> None:
    mesh = mesh_over_domains(degrees, domain)
    assert all(mesh.size(axis) == degrees.get(axis, 1) for axis in Axis)
    assert domain % mesh.ici_devices == 0
