"""Topology: how many of which chip a job has, in which shape, and which links close to a ring.

Written `v5e:16x16`, `2*v5p:8x8x8` (two slices) or `h100:8x8` (eight nodes of eight GPUs).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Self

from pydantic import PositiveInt, model_validator

from prompts_agent.errors import HardwareError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.chip import Chip, Domain, Torus
from prompts_agent.record import Record

__all__ = ["Topology", "parse_topology"]


class Topology(Record):
    """`shape` is in chips along the torus dims of a TPU, or (nodes, GPUs a node) of a GPU cluster.

    Make one with `parse_topology` or `Topology.of`, which check the shape. `slices` above 1 exist
    on TPUs only: they are joined by the data-centre network.
    """

    chip: str
    shape: tuple[PositiveInt, ...]
    slices: PositiveInt = 1

    @model_validator(mode="after")
    def _shape_exists(self) -> Self:
        chip = find_chip(self.chip)
        legal = _legal_shape(chip, self.shape, self.slices)
        if (chip.name, legal) != (self.chip, self.shape):
            raise HardwareError(
                f"topology {self}",
                rule="a stored topology has the chip's short name and the dims in the listed order",
                cure=f"Write {chip.name}:{'x'.join(map(str, legal))}.",
            )
        return self

    def __str__(self) -> str:
        prefix = f"{self.slices}*" if self.slices > 1 else ""
        return f"{prefix}{self.chip}:{'x'.join(map(str, self.shape))}"

    @classmethod
    def of(cls, chip: Chip, shape: tuple[int, ...], *, slices: int = 1) -> Topology:
        """A checked topology; a TPU shape in another order becomes the listed one (4x2 → 2x4).

        Raises `HardwareError` for a shape that cannot exist, naming those that can.
        """
        return cls(chip=chip.name, shape=_legal_shape(chip, shape, slices), slices=slices)

    @classmethod
    def for_device_count(cls, chip: Chip, devices: int) -> Topology:
        """The most compact topology with exactly `devices` JAX devices.

        Compact: the shortest longest dim, then the smallest sum of dims, so 64 chips of v5p are
        4x4x4. Beyond the largest slice, the fewest equal slices: 512 on v5e is 2*v5e:16x16.
        Raises `HardwareError` where no legal shape has that many devices.
        """
        if isinstance(chip.link, Domain):
            host = chip.devices_per_host
            if 1 <= devices <= host:
                return cls(chip=chip.name, shape=(1, devices))
            if devices > 0 and devices % host == 0:
                return cls(chip=chip.name, shape=(devices // host, host))
            raise HardwareError(
                f"{devices} devices of {chip.name}",
                rule=f"more than one node means whole nodes of {host} GPUs",
                cure=f"Use up to {host} or a multiple of {host}.",
            )
        chips, rest = divmod(devices, chip.devices_per_chip)
        fewest = max(1, -(-chips // chip.link.max_chips))
        # One slice is one slice: 12 chips of v5e are not three slices that share no links.
        most = 1 if fewest == 1 else 4 * fewest
        for slices in range(fewest, most + 1):
            shape = _compact_shape(chip.link, chips, slices) if devices > 0 and rest == 0 else None
            if shape is not None:
                return cls(chip=chip.name, shape=shape, slices=slices)
        raise HardwareError(
            f"{devices} devices of {chip.name}",
            rule=f"no slice of {chip.name} has that many",
            cure=f"Slices of {chip.name}: {_legal(chip.link)}"
            + (f", {chip.devices_per_chip} devices a chip." if chip.devices_per_chip > 1 else "."),
        )

    @property
    def devices_per_slice(self) -> int:
        """JAX devices of one slice; for a GPU cluster, all of them."""
        return math.prod(self.shape) * find_chip(self.chip).devices_per_chip

    @property
    def devices(self) -> int:
        """JAX devices in all slices."""
        return self.slices * self.devices_per_slice

    @property
    def hosts(self) -> int:
        """Machines in all slices; a slice smaller than a host has one."""
        chip = find_chip(self.chip)
        if isinstance(chip.link, Domain):
            return self.shape[0]
        return self.slices * -(-self.devices_per_slice // chip.devices_per_host)

    @property
    def wrap(self) -> tuple[bool, ...]:
        """Per dim, whether its links close to a ring; always False for a GPU cluster."""
        link = find_chip(self.chip).link
        if isinstance(link, Torus):
            return link.wraps(self.shape)
        return (False,) * len(self.shape)

    @property
    def domain_devices(self) -> int:
        """Devices that need no network between them: a slice, or an NVLink, xGMI or PCIe domain."""
        chip = find_chip(self.chip)
        if isinstance(chip.link, Torus):
            return self.devices_per_slice
        if chip.link.devices > chip.devices_per_host:
            return min(chip.link.devices, self.devices)
        return min(chip.link.devices, self.shape[1])


_SLICES_FIRST = re.compile(r"(?P<slices>\d+)\s*[*×]\s*(?P<rest>.+)")
_SLICES_LAST = re.compile(r"(?P<rest>.+?)\s*[*×]\s*(?P<slices>\d+)")
_SHAPED = re.compile(r"(?P<chip>[^:]+):(?P<shape>\d+(?:\s*[x×]\s*\d+)*)")
_COUNTED = re.compile(
    r"(?P<chip>(?:tpu-?)?v\d+(?:e|p|x|litepod)?|tpu\d+x)-(?P<count>\d+)", re.IGNORECASE
)


def parse_topology(text: str) -> Topology:
    """`v5e:4x4`, `2*v5e:16x16`, `v5e:16x16*2`, `h100:8x8` (nodes x GPUs), `h100:8` (one node).

    Raises `HardwareError` for anything else; `v5p-512` is refused, because the number counts
    TensorCores on v4 and v5p, chips on v5e and v6e, and papers use it for chips everywhere.
    """
    stripped = text.strip()
    counted = _COUNTED.fullmatch(stripped)
    if counted:
        raise _counted_error(stripped, counted["chip"], int(counted["count"]))
    slices, rest = 1, stripped
    match = _SLICES_FIRST.fullmatch(stripped) or _SLICES_LAST.fullmatch(stripped)
    if match:
        slices, rest = int(match["slices"]), match["rest"]
    shaped = _SHAPED.fullmatch(rest.strip())
    if shaped is None:
        raise HardwareError(
            f"topology {text!r}",
            rule="a topology is a chip, a colon and a shape",
            cure="Write v5e:16x16, 2*v5p:8x8x8 (two slices) or h100:8x8 (nodes x GPUs a node).",
        )
    chip = find_chip(shaped["chip"].strip())
    shape = tuple(int(size) for size in re.split(r"\s*[x×]\s*", shaped["shape"]))
    return Topology.of(chip, shape, slices=slices)


def _counted_error(text: str, name: str, count: int) -> HardwareError:
    """The readings of `v5p-512`, each with the topology that it would be."""
    chip = find_chip(name)
    readings = [("chips", count)]
    # A TensorCore is half a chip on v4, v5p and tpu7x; v5e and v6e have one a chip.
    if isinstance(chip.link, Torus) and chip.link.dims == 3:
        readings = [("TensorCores, as the cloud counts", count // 2), ("chips", count)]
    known = []
    for unit, chips in readings:
        try:
            topology = Topology.for_device_count(chip, chips * chip.devices_per_chip)
        except HardwareError:
            continue
        known.append(f"{topology} if {count} counts {unit}")
    cure = " or ".join(known) or f"{chip.name}:SHAPE with the shape in chips"
    return HardwareError(
        f"topology {text!r}",
        rule="the number after the dash counts TensorCores on v4 and v5p but chips on v5e and v6e, "
        "and gives no shape",
        cure=f"Write {cure}.",
    )


def _legal_shape(chip: Chip, shape: tuple[int, ...], slices: int) -> tuple[int, ...]:
    """`shape` in its listed order, or `HardwareError`."""
    if slices < 1:
        raise HardwareError(
            f"{slices} slices", rule="a job has at least one slice", cure="Write 1 or more."
        )
    if isinstance(chip.link, Torus):
        return _torus_shape(chip, chip.link, shape)
    if slices != 1:
        raise HardwareError(
            f"{slices} slices of {chip.name}",
            rule="GPU clusters are made of nodes, slices exist on TPUs only",
            cure=f"Write {chip.name}:NODESx{chip.devices_per_host}.",
        )
    return _cluster_shape(chip, shape)


def _torus_shape(chip: Chip, link: Torus, shape: tuple[int, ...]) -> tuple[int, ...]:
    listed = {tuple(sorted(known)): known for known in link.shapes}
    ordered = tuple(sorted(shape))
    if len(shape) == link.dims:
        if ordered in listed:
            return listed[ordered]
        if (
            link.cube is not None
            and all(size > 0 and size % link.cube == 0 for size in shape)
            and math.prod(shape) <= link.max_chips
        ):
            return ordered
    raise HardwareError(
        f"topology {chip.name}:{'x'.join(map(str, shape))}",
        rule=f"not a shape that a {chip.name} slice can have",
        cure=f"Legal: {_legal(link)}.",
    )


def _cluster_shape(chip: Chip, shape: tuple[int, ...]) -> tuple[int, int]:
    host = chip.devices_per_host
    nodes, gpus = (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])
    if len(shape) <= 2 and nodes >= 1 and 1 <= gpus <= host:
        return nodes, gpus
    cure = f"Write {chip.name}:NODESx{host}"
    if len(shape) == 1 and shape[0] % host == 0 and shape[0] > 0:
        cure = f"Write {chip.name}:{shape[0] // host}x{host}"
    raise HardwareError(
        f"topology {chip.name}:{'x'.join(map(str, shape))}",
        rule=f"a GPU topology is nodes x GPUs a node, and a node of {chip.name} has up to {host}",
        cure=f"{cure}.",
    )


def _legal(link: Torus) -> str:
    shapes = ", ".join("x".join(map(str, shape)) for shape in link.shapes)
    if link.cube is None:
        return shapes
    size = link.cube
    return (
        f"{shapes}, and every AxBxC whose dims are multiples of {size}, up to {link.max_chips} "
        f"chips (for example {size}x{size}x{size} or {2 * size}x{2 * size}x{2 * size})"
    )


def _cube_shapes(link: Torus, chips: int) -> Iterator[tuple[int, ...]]:
    """Ascending AxBxC of multiples of the cube with `chips` chips."""
    if link.cube is None or chips % link.cube**3:
        return
    cubes = chips // link.cube**3
    for a, b in itertools.product(range(1, math.isqrt(cubes) + 1), repeat=2):
        c, rest = divmod(cubes, a * b)
        if rest == 0 and a <= b <= c:
            yield a * link.cube, b * link.cube, c * link.cube


def _compact_shape(link: Torus, chips: int, slices: int) -> tuple[int, ...] | None:
    """The most compact shape of one of `slices` equal slices with `chips` chips together."""
    each, rest = divmod(chips, slices)
    if rest or each > link.max_chips:
        return None
    fitting = [shape for shape in link.shapes if math.prod(shape) == each]
    fitting += _cube_shapes(link, each)
    return min(fitting, key=lambda shape: (max(shape), sum(shape)), default=None)
