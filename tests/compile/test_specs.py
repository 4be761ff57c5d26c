"""jax's own arithmetic of shards, on meshes of devices that do not exist."""

from __future__ import annotations

import pytest

from prompts_agent.compile.specs import shard_shapes
from prompts_agent.errors import LayoutError
from prompts_agent.layout.mesh import Mesh


def test_each_dim_is_divided_by_its_axes() -> None:
    # 4096 / fsdp 16 = 256; 14336 / tensor 4 = 3584.
    found = shard_shapes(
        Mesh.of(fsdp=16, tensor=4), {"up": (4096, 14336)}, {"up": ("fsdp", "tensor")}
    )
    assert found == {"up": (256, 3584)}


def test_an_axis_of_size_one_may_be_named() -> None:
    found = shard_shapes(Mesh.of(fsdp=4), {"up": (64, 32)}, {"up": (("fsdp", "context"), "tensor")})
    assert found == {"up": (16, 32)}


def test_what_does_not_divide_is_refused_with_the_cure() -> None:
    with pytest.raises(LayoutError, match="Change the axis sizes"):
        shard_shapes(Mesh.of(tensor=8), {"key": (64, 12)}, {"key": (None, "tensor")})


def test_an_axis_named_twice_is_refused() -> None:
    with pytest.raises(LayoutError, match="names tensor twice"):
        shard_shapes(Mesh.of(tensor=2), {"w": (8, 8)}, {"w": ("tensor", "tensor")})
