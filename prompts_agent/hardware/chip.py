"""Chip: what one JAX device can do and how it reaches its neighbours, every figure with its source.

All figures are per JAX device. On tpu7x a chip shows two devices, so its data sheet's figures are
halved here; on every other chip a device is the chip. The one exception is the link of a torus,
which belongs to a chip and is shared by that chip's devices.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from prompts_agent.record import Record

__all__ = ["Chip", "Domain", "Torus"]


class Torus(Record):
    """The inter-chip links of a TPU: a grid with one link to each neighbour in `dims` dims.

    `link_bandwidth_bytes_per_s` is one way over one link of one chip. A ring along a wrapped dim
    can send both ways at once and so moves twice that; a line (no wrap) gains nothing from the
    second direction for an all-gather, because its ends have one neighbour only.
    `sibling_bandwidth_bytes_per_s` is one way between the two devices of one chip (tpu7x).

    Wrap rule. 2-D slices wrap in the dims that span the whole pod (`wrap_size` = 16), so 8x16 wraps
    in its second dim alone. 3-D slices are made of 4x4x4 cubes (`cube` = 4) joined by optical
    switches and wrap in all dims or in none: 4x4x8 does, 2x4x4 does not. Shapes of n x n x 2n and n
    x 2n x 2n can be twisted for a better bisection; the wraps are the same.
    """

    kind: Literal["torus"]
    dims: Literal[2, 3]
    link_bandwidth_bytes_per_s: PositiveFloat
    sibling_bandwidth_bytes_per_s: PositiveFloat | None
    wrap_size: PositiveInt | None
    cube: PositiveInt | None
    max_chips: PositiveInt
    shapes: tuple[tuple[PositiveInt, ...], ...]

    @property
    def links_per_chip(self) -> int:
        """Two a dim, one to each neighbour."""
        return 2 * self.dims

    def wraps(self, shape: tuple[int, ...]) -> tuple[bool, ...]:
        """Which dims of a slice of `shape` (chips) close to a ring."""
        if self.cube is not None:
            whole = all(size % self.cube == 0 for size in shape)
            return (whole,) * len(shape)
        return tuple(size == self.wrap_size for size in shape)


class Domain(Record):
    """The fast links of a GPU: any device reaches any other of its `devices` at the full rate.

    `bandwidth_bytes_per_s` is what one GPU sends, one way, all its links together. Cards without
    NVLink or Infinity Fabric have their PCIe slot here.
    """

    kind: Literal["domain"]
    technology: str
    bandwidth_bytes_per_s: PositiveFloat
    devices: PositiveInt


class Chip(Record):
    """One accelerator. A dtype that is absent from `peak_flops` is unsupported or unpublished.

    `peak_flops` is FLOP/s (int8: op/s) of dense matrix units, never the figure with sparsity.
    `hbm_bytes` is what is soldered on; `usable_hbm_bytes` what a program can be given: on TPUs the
    limit of the compiler, on GPUs the total that the driver reports, before CUDA's and NCCL's own
    needs. `network_bandwidth_bytes_per_s` is one way, one device, of the system named in `sources`.
    `host_link_bandwidth_bytes_per_s` is one way to the host's memory. None is unknown.
    """

    name: str
    label: str
    vendor: str
    platform: Literal["tpu", "gpu"]
    aliases: tuple[str, ...] = ()
    devices_per_chip: PositiveInt
    devices_per_host: PositiveInt
    peak_flops: dict[str, PositiveFloat]
    hbm_bytes: PositiveInt
    usable_hbm_bytes: PositiveInt | None
    hbm_bandwidth_bytes_per_s: PositiveFloat
    link: Annotated[Torus | Domain, Field(discriminator="kind")]
    network_bandwidth_bytes_per_s: PositiveFloat | None
    host_link_bandwidth_bytes_per_s: PositiveFloat | None
    sources: dict[str, str]

    @model_validator(mode="after")
    def _every_figure_has_a_source(self) -> Self:
        figures = (
            "peak_flops",
            "hbm_bytes",
            "usable_hbm_bytes",
            "hbm_bandwidth_bytes_per_s",
            "link",
            "network_bandwidth_bytes_per_s",
            "host_link_bandwidth_bytes_per_s",
            "devices_per_host",
        )
        missing = [figure for figure in figures if figure not in self.sources]
        if missing:
            raise ValueError(f"no source for {', '.join(missing)}")
        return self

    @property
    def domain_devices(self) -> int | None:
        """Devices that share the fast links of a GPU; None on a TPU, where the slice decides."""
        return self.link.devices if isinstance(self.link, Domain) else None

    @property
    def slice_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The listed TPU shapes, in chips; multiples of a cube come on top. Empty on a GPU."""
        return self.link.shapes if isinstance(self.link, Torus) else ()
