"""Mesh: the axes of a job's devices and their sizes, inside and across fast domains.

We say *axis* for a direction of the device mesh and *dim* for a dimension of a tensor, always.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field, RootModel, field_serializer, model_validator

from prompts_agent.record import Record

__all__ = ["Axis", "AxisSize", "Mesh"]


class Axis(StrEnum):
    """The axes, in order of increasing network intensity, so the last is the innermost.

    jax's `create_hybrid_device_mesh` documents the same order: "replica" first, "mdl" last.
    """

    PIPELINE = "pipeline"
    """Layers are cut into stages; activations pass from stage to stage."""
    DATA = "data"
    """Batch is cut, weights are whole: gradients are all-reduced. In serving: replicas."""
    FSDP = "fsdp"
    """Batch and weights are cut: weights are all-gathered, gradients reduce-scattered."""
    EXPERT = "expert"
    """Experts are cut: tokens travel by all-to-all."""
    CONTEXT = "context"
    """Sequence is cut: keys and values travel."""
    TENSOR = "tensor"
    """Heads, mlp and vocab are cut: activations are reduced in every layer."""


class AxisSize(Record):
    """The size of an axis inside and across fast domains; its whole size is their product.

    `ici` lies inside one slice's torus or one NVLink domain, `dcn` across slices or the network
    between hosts.
    """

    ici: int = Field(default=1, ge=1)
    dcn: int = Field(default=1, ge=1)

    @property
    def size(self) -> int:
        """Devices along the axis."""
        return self.ici * self.dcn


class Mesh(RootModel[dict[Axis, AxisSize]]):
    """Every axis with its size, in the order of `Axis`; an axis that is not named has size 1.

    >>> Mesh.of(fsdp=16, tensor=4).devices
    64
    """

    model_config = {"frozen": True}

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        known = {str(axis): size for axis, size in value.items()}
        extra = [name for name in known if name not in set(Axis)]
        if extra:
            raise ValueError(f"unknown axes {extra}: the axes are {', '.join(Axis)}")
        # A bare number is the size inside the domain, as a person writes it: {fsdp: 16}.
        sizes = {name: {"ici": v} if isinstance(v, int) else v for name, v in known.items()}
        return {axis: sizes.get(axis.value, {}) for axis in Axis}

    @field_serializer("root")
    def _plain(self, root: dict[Axis, AxisSize]) -> dict[str, dict[str, int]]:
        return {axis.value: {"ici": size.ici, "dcn": size.dcn} for axis, size in root.items()}

    @classmethod
    def of(cls, **sizes: int) -> Mesh:
        """A mesh inside one domain: `Mesh.of(fsdp=16, tensor=4)`."""
        return cls.model_validate(sizes)

    def __getitem__(self, axis: Axis) -> AxisSize:
        return self.root[axis]

    def size(self, axis: Axis) -> int:
        """Devices along `axis`."""
        return self.root[axis].size

    @property
    def devices(self) -> int:
        """The product of all axes."""
        return math.prod(size.size for size in self.root.values())

    @property
    def ici_devices(self) -> int:
        """Devices of one fast domain."""
        return math.prod(size.ici for size in self.root.values())

    @property
    def dcn_devices(self) -> int:
        """Number of fast domains."""
        return math.prod(size.dcn for size in self.root.values())

    def used(self) -> dict[Axis, int]:
        """Axes larger than one, outermost first."""
        return {axis: size.size for axis, size in self.root.items() if size.size > 1}

    def __str__(self) -> str:
        used = self.used()
        return " × ".join(f"{axis} {n}" for axis, n in used.items()) if used else "one device"

    def __hash__(self) -> int:
        return hash(tuple((s.ici, s.dcn) for s in self.root.values()))
