"""Replica groups in every encoding, against hand-worked lists and numpy."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_build import Program, iota_list, mesh_proto

from prompts_agent.trace.hlo.groups import (
    DeviceGroups,
    groups_from_proto,
    iota_groups,
    mesh_groups,
    pair_groups,
    parse_groups,
    parse_pairs,
)

FOUR_PAIRS = ((0, 4), (1, 5), (2, 6), (3, 7))
TWO_FOURS = ((0, 1, 2, 3), (4, 5, 6, 7))


@st.composite
def iotas(draw: st.DrawFn) -> tuple[list[int], list[int], int, int]:
    dims = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    perm = draw(st.permutations(range(len(dims))))
    total = prod(dims)
    size = draw(st.sampled_from([k for k in range(1, total + 1) if total % k == 0]))
    return dims, perm, total // size, size


def numpy_groups(dims: list[int], perm: list[int], count: int, size: int) -> list[list[int]]:
    order = np.arange(prod(dims)).reshape(dims).transpose(perm).reshape(count, size)
    return [list(map(int, group)) for group in order]


@given(iotas())
def test_iota_is_numpy_reshape_and_transpose(iota: tuple[list[int], list[int], int, int]) -> None:
    assert [list(g) for g in iota_groups(*iota)] == numpy_groups(*iota)


@given(iotas())
def test_iota_text_reads_as_the_iota(iota: tuple[list[int], list[int], int, int]) -> None:
    dims, perm, count, size = iota
    text = f"[{count},{size}]<=[{','.join(map(str, dims))}]T({','.join(map(str, perm))})"
    found = parse_groups(text)
    assert found is not None
    assert [list(g) for g in found.groups] == numpy_groups(dims, perm, count, size)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_mesh_groups_vary_only_along_their_axes(sizes: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(range(len(sizes))), min_size=1, unique=True))
    found = mesh_groups(sizes, [(axis, None) for axis in axes])
    assert sorted(device for group in found for device in group) == list(range(prod(sizes)))
    others = [k for k in range(len(sizes)) if k not in axes]
    for group in found:
        coords = np.array(np.unravel_index(group, sizes)).T
        assert len(group) == prod(sizes[k] for k in axes)
        assert all(len(set(coords[:, k].tolist())) == 1 for k in others)


def test_iota_must_hold_all_devices() -> None:
    with pytest.raises(ValueError, match="3 groups of 2 are not 8 devices"):
        iota_groups([2, 4], [1, 0], 3, 2)


def test_part_of_an_axis() -> None:
    # Axis of 8 cut as 2 × 4: the part of size 4 with 2 before it holds neighbours.
    assert mesh_groups([8], [(0, (2, 4))]) == TWO_FOURS
    # The part of size 2 with nothing before it pairs devices four apart.
    assert mesh_groups([8], [(0, (1, 2))]) == FOUR_PAIRS


def test_device_order_of_a_mesh() -> None:
    # Position 0 holds device 3, position 1 device 2, and so on.
    assert mesh_groups([2, 2], [(1, None)], [3, 2, 1, 0]) == ((3, 2), (1, 0))


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,4},{1,5},{2,6},{3,7}}", FOUR_PAIRS),
        ("[4,2]<=[2,4]T(1,0)", FOUR_PAIRS),
        ("[2,4]<=[8]", TWO_FOURS),
        ("[8]<=[8]", (tuple(range(8)),)),
        ("{}", ()),
        ("mesh['data'=2,'model'=4] {'data'}", FOUR_PAIRS),
        ("mesh['data'=2,'model'=4] {model}", TWO_FOURS),
    ],
)
def test_text_forms(text: str, groups: tuple[tuple[int, ...], ...]) -> None:
    found = parse_groups(text)
    assert found is not None
    assert found.groups == groups


def test_mesh_text_keeps_names() -> None:
    found = parse_groups("mesh['data'=2,'model'=4] {'data','model'}")
    assert found == DeviceGroups(
        (tuple(range(8)),), ("data", "model"), (("data", 2), ("model", 4)), None
    )


def test_no_groups_in_other_text() -> None:
    assert parse_groups("unspecified") is None


def test_pairs() -> None:
    pairs = parse_pairs("{{0,1},{1,2},{2,0},{4,5}}")
    assert pairs == ((0, 1), (1, 2), (2, 0), (4, 5))
    assert pair_groups(pairs) == ((0, 1, 2), (4, 5))


def test_the_five_forms_of_protos() -> None:
    program = Program()
    legacy = program.add("a", "all-reduce")
    for group in FOUR_PAIRS:
        legacy.replica_groups.add(replica_ids=group)
    listed = program.add("b", "all-reduce")
    for group in FOUR_PAIRS:
        listed.collective_device_list.replica_groups.add(replica_ids=group)
    old_iota = program.add("c", "all-reduce")
    old_iota.collective_device_list.iota_replica_group_list.CopyFrom(
        iota_list(4, 2, [2, 4], [1, 0])
    )
    iota = program.add("d", "all-reduce")
    iota.iota_collective_device_list.CopyFrom(iota_list(4, 2, [2, 4], [1, 0]))
    mesh = program.add("e", "all-reduce")
    mesh.mesh_axes_replica_group_list.mesh.CopyFrom(mesh_proto({"data": 2, "model": 4}))
    mesh.mesh_axes_replica_group_list.axes.add(mesh_axis_index=0)
    for instruction in (legacy, listed, old_iota, iota, mesh):
        found = groups_from_proto(instruction)
        assert found is not None, instruction.name
        assert found.groups == FOUR_PAIRS, instruction.name
    named = groups_from_proto(mesh)
    assert named is not None
    assert named.axes == ("data",)


def test_permutes_have_pairs() -> None:
    permute = Program().add("p", "collective-permute")
    for source, target in ((0, 1), (1, 0), (2, 3), (3, 2)):
        permute.source_target_pairs.add(source=source, target=target)
    assert groups_from_proto(permute) == DeviceGroups(((0, 1), (2, 3)))


def test_other_instructions_have_none() -> None:
    assert groups_from_proto(Program().add("x", "add")) is None
