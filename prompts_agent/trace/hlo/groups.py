"""Who takes part in a collective: replica groups in all the forms that traces hold.

Protos have five forms: lists in the instruction, lists in a device list, an iota in the device
list (written before 2026), an iota of its own, and axes of a mesh. Text has three: `{{0,4},{1,5}}`,
`[4,2]<=[2,4]T(1,0)` and `mesh['data'=2,'model'=4] {'data'}`. A permute has source-target pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

__all__ = [
    "DeviceGroups",
    "groups_from_proto",
    "iota_groups",
    "mesh_groups",
    "pair_groups",
    "parse_groups",
    "parse_pairs",
]

Groups = tuple[tuple[int, ...], ...]

MAX_DEVICES = 1 << 20
"""No job has a million devices; twenty bytes of damaged text can name more than memory holds."""


@dataclass(frozen=True, slots=True)
class DeviceGroups:
    """`groups` of device positions; empty means one group of all devices.

    `axes` and `mesh` are there where the program names them.
    """

    groups: Groups
    axes: tuple[str, ...] | None = None
    mesh: tuple[tuple[str, int], ...] | None = None
    order: tuple[int, ...] | None = None
    """Device of each mesh position, None where it is 0, 1, 2…"""

    @property
    def size(self) -> int | None:
        """Devices in the largest group, None where the group is "all devices"."""
        return max((len(group) for group in self.groups), default=None)


def iota_order(reshape_dims: Sequence[int], transpose_perm: Sequence[int]) -> list[int]:
    """range(n) reshaped to `reshape_dims`, transposed by `transpose_perm`, flattened.

    `[2,4]`, `(1,0)` gives 0 4 1 5 2 6 3 7. An empty permutation is the identity.
    """
    dims = list(reshape_dims)
    perm = list(transpose_perm) or list(range(len(dims)))
    if sorted(perm) != list(range(len(dims))):
        raise ValueError(f"{perm} is no permutation of {len(dims)} dims")
    if prod(dims) > MAX_DEVICES:
        raise ValueError(f"{dims} are more than {MAX_DEVICES} devices")
    strides = [prod(dims[k + 1 :]) for k in range(len(dims))]
    order = [0]
    for axis in perm:
        order = [base + step * strides[axis] for base in order for step in range(dims[axis])]
    return order


def iota_groups(
    reshape_dims: Sequence[int], transpose_perm: Sequence[int], count: int, size: int
) -> Groups:
    """Cuts the iota order in `count` groups of `size`.

    `[4,2]<=[2,4]T(1,0)` gives {0,4},{1,5},{2,6},{3,7}. Raises ValueError where the dims do not
    hold `count × size` devices.
    """
    order = iota_order(reshape_dims, transpose_perm)
    if count * size != len(order):
        raise ValueError(f"{count} groups of {size} are not {len(order)} devices")
    return tuple(tuple(order[k * size : (k + 1) * size]) for k in range(count))


def mesh_groups(
    sizes: Sequence[int],
    axes: Sequence[tuple[int, tuple[int, int] | None]],
    devices: Sequence[int] | None = None,
) -> Groups:
    """Groups that span `axes` (indices into `sizes`) of a mesh, whose device order is row-major.

    An axis may be cut: `(1, (2, 4))` is the part of size 4 of axis 1 that has 2 before it.
    `mesh_groups([2, 4], [(0, None)])` gives {0,4},{1,5},{2,6},{3,7}.
    """
    parts: list[int] = []
    place: dict[tuple[int, tuple[int, int] | None], int] = {}
    for index, size in enumerate(sizes):
        cuts = sorted(cut for axis, cut in axes if axis == index and cut is not None)
        done = 1
        for pre, part in cuts:
            if pre > done:
                parts.append(pre // done)
            place[index, (pre, part)] = len(parts)
            parts.append(part)
            done = pre * part
        place[index, None] = len(parts)
        if size > done or not cuts:
            parts.append(size // done)
    spanned = [place[axis] for axis in axes]
    others = [k for k in range(len(parts)) if k not in spanned]
    size = prod(parts[k] for k in spanned)
    order = iota_order(parts, others + spanned)
    if devices:
        order = [devices[k] for k in order]
    return tuple(tuple(order[k : k + size]) for k in range(0, len(order), size))


def pair_groups(pairs: Iterable[tuple[int, int]]) -> Groups:
    """Connected devices of a permute's source-target pairs: (0,1),(1,0),(2,3) gives {0,1},{2,3}."""
    leader: dict[int, int] = {}

    def find(device: int) -> int:
        leader.setdefault(device, device)
        while leader[device] != device:
            leader[device] = leader[leader[device]]
            device = leader[device]
        return device

    for source, target in pairs:
        low, high = sorted((find(source), find(target)))
        leader[high] = low
    members: dict[int, list[int]] = {}
    for device in sorted(leader):
        members.setdefault(find(device), []).append(device)
    return tuple(tuple(group) for group in members.values() if len(group) > 1)


# ---- text

_IOTA = re.compile(r"\[(\d+(?:,\d+)*)\]<=\[(\d+(?:,\d+)*)\](?:T\((\d+(?:,\d+)*)\))?")
_ORDER = re.compile(r"\[(\d+(?:,\d+)*)\](?:<=\[(\d+(?:,\d+)*)\])?(?:T\((\d+(?:,\d+)*)\))?")
_LIST = re.compile(r"\{([\d,\s]*)\}")
_MESH = re.compile(r"@?mesh\s*\[(?P<sizes>[^\]]*)\](?P<order>[^{]*)\{(?P<axes>[^}]*)\}")
_MESH_AXIS = re.compile(r"['\"]?([^'\"=,\s]+)['\"]?\s*=\s*(\d+)")
_AXIS_REF = re.compile(r"['\"]?([^'\":,\s]+)['\"]?(?::\((\d+)\)(\d+))?")


def _numbers(text: str | None) -> list[int]:
    numbers = [int(number) for number in (text or "").split(",") if number.strip()]
    if max(numbers, default=0) > MAX_DEVICES:
        raise ValueError(f"{max(numbers)} is no device of a job")
    return numbers


def parse_groups(text: str) -> DeviceGroups | None:
    """The value of `replica_groups=`, or None where it is none of the three forms."""
    text = text.strip()
    mesh = _MESH.match(text)
    if mesh:
        return _parse_mesh(mesh)
    iota = _IOTA.match(text)
    if iota:
        shape = _numbers(iota[1])
        count, size = (shape[0], prod(shape[1:])) if len(shape) > 1 else (1, shape[0])
        return DeviceGroups(iota_groups(_numbers(iota[2]), _numbers(iota[3]), count, size))
    if text.startswith("{"):
        return DeviceGroups(tuple(tuple(_numbers(group)) for group in _LIST.findall(text) if group))
    return None


def _parse_mesh(match: re.Match[str]) -> DeviceGroups:
    mesh = tuple((name, int(size)) for name, size in _MESH_AXIS.findall(match["sizes"]))
    names = [name for name, _ in mesh]
    axes: list[tuple[int, tuple[int, int] | None]] = []
    for name, pre, size in _AXIS_REF.findall(match["axes"]):
        axes.append((names.index(name), (int(pre), int(size)) if pre else None))
    # `[8]<=[2,4]T(1,0)` or, where the mesh has the shape, `([2,4]T(1,0))`.
    iota = _ORDER.search(match["order"].replace(" ", ""))
    devices = iota_order(_numbers(iota[2] or iota[1]), _numbers(iota[3])) if iota else None
    spanned = tuple(names[axis] for axis, _ in axes)
    groups = mesh_groups([size for _, size in mesh], axes, devices)
    return DeviceGroups(groups, spanned, mesh, tuple(devices) if devices else None)


def parse_pairs(text: str) -> tuple[tuple[int, int], ...]:
    """The value of `source_target_pairs=`: `{{0,1},{1,0}}`."""
    pairs = (_numbers(pair) for pair in _LIST.findall(text) if pair)
    return tuple((pair[0], pair[1]) for pair in pairs if len(pair) == 2)


# ---- protos


def mesh_device_order(mesh: Any) -> list[int] | None:
    """Device of each mesh position of a `MeshProto`, None where it is 0, 1, 2…"""
    if mesh.device_ids:
        return list(mesh.device_ids)
    if mesh.iota_transform.reshape_dims:
        return iota_order(mesh.iota_transform.reshape_dims, mesh.iota_transform.transpose_perm)
    return None


def _iota_from_proto(proto: Any) -> DeviceGroups:
    return DeviceGroups(
        iota_groups(
            proto.iota_reshape_dims,
            proto.iota_transpose_perm,
            proto.num_replica_groups,
            proto.num_devices_per_group,
        )
    )


def axis_refs(refs: Any) -> list[tuple[int, tuple[int, int] | None]]:
    """(axis index, cut) of each `AxisRefProto`."""
    return [
        (
            ref.mesh_axis_index,
            (ref.sub_axis_info.pre_size, ref.sub_axis_info.size)
            if ref.HasField("sub_axis_info")
            else None,
        )
        for ref in refs
    ]


def _mesh_from_proto(proto: Any) -> DeviceGroups:
    mesh = tuple((axis.name, axis.size) for axis in proto.mesh.axes)
    axes = axis_refs(proto.axes)
    order = mesh_device_order(proto.mesh)
    groups = mesh_groups([size for _, size in mesh], axes, order)
    spanned = tuple(mesh[axis][0] for axis, _ in axes)
    return DeviceGroups(groups, spanned, mesh, tuple(order) if order else None)


def groups_from_proto(instruction: Any) -> DeviceGroups | None:
    """Groups of an `HloInstructionProto`, None where it takes part in no collective."""
    if instruction.replica_groups:
        return DeviceGroups(tuple(tuple(g.replica_ids) for g in instruction.replica_groups))
    if instruction.HasField("collective_device_list"):
        devices = instruction.collective_device_list
        if devices.HasField("iota_replica_group_list"):
            return _iota_from_proto(devices.iota_replica_group_list)
        return DeviceGroups(tuple(tuple(g.replica_ids) for g in devices.replica_groups))
    if instruction.HasField("iota_collective_device_list"):
        return _iota_from_proto(instruction.iota_collective_device_list)
    if instruction.HasField("mesh_axes_replica_group_list"):
        return _mesh_from_proto(instruction.mesh_axes_replica_group_list)
    if instruction.source_target_pairs:
        pairs = ((pair.source, pair.target) for pair in instruction.source_target_pairs)
        return DeviceGroups(pair_groups(pairs))
    return None
