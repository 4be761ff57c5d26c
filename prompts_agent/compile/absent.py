"""Absent devices: jax's device objects of a topology that is not there, and a mesh of them.

Imports jax and loads a compiler; only the worker does.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from prompts_agent.compile.gpu_description import embedded_description, written_description
from prompts_agent.compile.target import Target
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.specs import ATTENTION_DATA

__all__ = ["absent_devices", "absent_mesh"]


def absent_devices(target: Target, compiler: str) -> tuple[list[Any], str]:
    """The devices of `target`, and where the compiler's knowledge of the chip comes from."""
    from jax.experimental import topologies

    if target.platform == "tpu":
        options: dict[str, Any] = {"wrap": target.wrap}
        if target.chips_per_host is not None:
            options["chips_per_host_bounds"] = target.chips_per_host
        if target.chip_config is not None:
            options["chip_config_name"] = target.chip_config
        if target.slices > 1:
            options["num_slices"] = target.slices
        found = topologies.get_topology_desc(
            platform="tpu", topology_name=target.topology_name, **options
        )
        return list(found.devices), "libtpu"
    _register_cuda()
    chip = find_chip(target.chip)
    embedded = embedded_description(chip, compiler)
    found = topologies.get_topology_desc(
        platform="cuda",
        topology_name="",
        topology=target.topology_name,
        target_config=embedded or written_description(chip),
    )
    return list(found.devices), compiler if embedded else "public figures"


def _register_cuda() -> None:
    """Jax finds plugins when it first makes a backend; with absent devices it never makes one."""
    from jax._src import xla_bridge

    if "cuda" not in xla_bridge._backend_factories:  # noqa: SLF001  (no public way)
        xla_bridge.discover_pjrt_plugins()


def absent_mesh(devices: list[Any], sizes: dict[str, int], layout: Layout, slices: int) -> Any:
    """A mesh with axes `sizes`, whose axes across slices take whole slices.

    jax lays axes over the torus by its own rule; where that finds no place, devices are taken in
    their order, which changes no byte and no collective's size.
    """
    from jax.experimental import mesh_utils
    from jax.sharding import AxisType, Mesh

    shape = tuple(sizes.values())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if slices > 1:
                dcn = tuple(_dcn(layout, name) for name in sizes)
                ici = tuple(size // across for size, across in zip(shape, dcn, strict=True))
                grid = mesh_utils.create_hybrid_device_mesh(
                    ici, dcn, devices, allow_split_physical_axes=True
                )
            else:
                grid = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
    except (AssertionError, NotImplementedError, ValueError):
        grid = np.array(devices).reshape(shape)
    return Mesh(grid, tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))


def _dcn(layout: Layout, name: str) -> int:
    """Across how many slices an axis of the emitted mesh goes."""
    if name == ATTENTION_DATA:
        return 1
    return next(size.dcn for axis, size in layout.mesh.root.items() if axis.value == name)
