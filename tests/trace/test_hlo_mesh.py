"""The mesh in use: named, laid out by parameters, or implied by groups."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.trace.hlo.groups import DeviceGroups, mesh_groups
from prompts_agent.trace.hlo.mesh import Mesh, find_mesh, infer_mesh
from prompts_agent.trace.hlo.partition import partition_cuts, tile_cuts
from prompts_agent.trace.hlo.sharding import parse_sharding


def spanning(sizes: list[int], *axes: int) -> DeviceGroups:
    return DeviceGroups(mesh_groups(sizes, [(axis, None) for axis in axes]))


def test_cuts_of_a_partition() -> None:
    # {0,4},… has stride 4 and size 2; {0..3},… stride 1 and size 4.
    assert partition_cuts(((0, 4), (1, 5), (2, 6), (3, 7)), 8) == {4, 8}
    assert partition_cuts(((0, 1, 2, 3), (4, 5, 6, 7)), 8) == {1, 4}
    # 0 1 4 5 | 2 3 6 7: strides 1 and 4, sizes 2 and 2.
    assert partition_cuts(((0, 1, 4, 5), (2, 3, 6, 7)), 8) == {1, 2, 4, 8}


def test_irregular_partitions_say_nothing() -> None:
    assert partition_cuts(((0, 1, 2), (3, 4, 5, 6, 7)), 8) == frozenset()
    assert partition_cuts(((0, 1), (2, 3)), 8) == frozenset()  # some devices take no part
    assert partition_cuts(((0, 3), (1, 2)), 4) == frozenset()


def test_cuts_of_a_sharding() -> None:
    # [1,8,4]<=[4,8]T(1,0): tiles along dim 1 are neighbours (stride 1, size 8), copies 8 apart.
    assert tile_cuts((1, 8, 4), (4, 8), (1, 0)) == {1, 8, 32}
    # A list of devices, as before iota: two tiles of neighbours.
    assert tile_cuts((2, 2), (), (), (0, 1, 2, 3)) == {1, 2, 4}


def test_axes_from_groups_outermost_first() -> None:
    groups = [spanning([2, 4], 0).groups, spanning([2, 4], 1).groups]
    mesh = infer_mesh(groups, [], 8)
    assert mesh == Mesh((("axis0", 2), ("axis1", 4)), named=False)


def test_parameters_come_before_groups() -> None:
    # A reshard among pairs of the inner eight would cut it; the parameters say it is one axis.
    shardings = [parse_sharding("{devices=[1,8,4]<=[4,8]T(1,0) last_tile_dim_replicate}")]
    pairs = DeviceGroups(tuple((k, k + 1) for k in range(0, 32, 2)))
    mesh = find_mesh([pairs], [s for s in shardings if s], 32)
    assert mesh is not None
    assert mesh.axes == (("axis0", 4), ("axis1", 8))
    assert mesh.axis_of(pairs) == "axis1"


def test_names_count_before_all_else() -> None:
    named = DeviceGroups(((0, 1), (2, 3)), ("model",), (("data", 2), ("model", 2)))
    mesh = find_mesh([named], [], 4)
    assert mesh == Mesh((("data", 2), ("model", 2)), named=True)
    assert mesh is not None
    assert mesh.axis_of(named) == "model"
    assert mesh.axis_of(DeviceGroups(((0, 2), (1, 3)))) == "data"
    assert mesh.axis_of(DeviceGroups(((0, 1, 2, 3),))) == "data+model"


def test_invented_names_are_no_names() -> None:
    # XLA calls axes of groups that it derived itself axis_0, axis_1…, differently for each.
    invented = DeviceGroups(((0, 2), (1, 3)), ("axis_1",), (("axis_0", 1), ("axis_1", 2)))
    mesh = find_mesh([invented], [], 4)
    assert mesh == Mesh((("axis0", 2), ("axis1", 2)), named=False)


def test_axis_of_odd_groups() -> None:
    mesh = Mesh((("data", 2), ("model", 4)), named=True)
    assert mesh.axis_of(DeviceGroups(())) == "data+model"  # all devices
    assert mesh.axis_of(DeviceGroups(((0,), (1,)))) is None
    assert mesh.axis_of(DeviceGroups(((0, 1), (4, 5)))) == "model"  # a permute between neighbours
    assert mesh.axis_of(DeviceGroups(((0, 5),))) == "data+model"


def test_one_device_has_no_mesh() -> None:
    assert infer_mesh([], [], 1) is None
    assert infer_mesh([], [], None) is None


@given(st.lists(st.integers(2, 4), min_size=1, max_size=4), st.data())
def test_every_axis_of_a_mesh_is_found_again(sizes: list[int], data: st.DataObject) -> None:
    """With one collective over each axis, the inferred mesh is the mesh."""
    order = data.draw(st.permutations(range(len(sizes))))
    groups = [spanning(sizes, axis).groups for axis in order]
    mesh = infer_mesh(groups, [], prod(sizes))
    assert mesh is not None
    assert [size for _, size in mesh.axes] == sizes
    for axis in range(len(sizes)):
        assert mesh.axis_of(spanning(sizes, axis)) == f"axis{axis}"
