"""Target: the topology that is compiled for, as jax names it, and the flags that go with it."""

from __future__ import annotations

from typing import Literal

from prompts_agent.errors import HardwareError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.chip import Domain
from prompts_agent.hardware.topology import Topology
from prompts_agent.record import Record

__all__ = ["Target", "target_of"]

Flag = str | bool | int

_WINDOWED_EINSUM_MIB = "1000000"
"""Above any tensor's size: collective matmuls stay off, as published recipes have them off on v6e
(and as the programs were compiled whose needs `estimate/data/measured.yaml` lists)."""


class Target(Record):
    """A place to compile for. `hbm_limit_bytes` is of one device; None where nobody has said it."""

    platform: Literal["tpu", "gpu"]
    topology_name: str
    chips_per_host: tuple[int, int, int] | None = None
    wrap: tuple[bool, bool, bool] | None = None
    slices: int = 1
    chip_config: str | None = None
    hosts: int = 1
    chip: str
    devices: int
    hbm_limit_bytes: int | None
    kernel: Literal["splash", "cudnn", "blocked"]
    one_hot_lookup: bool
    flags: dict[str, Flag]


def target_of(topology: Topology) -> Target:
    """How `topology` is asked for. Raises `HardwareError` where no compiler can compile for it."""
    chip = find_chip(topology.chip)
    if chip.platform == "gpu" and chip.vendor != "NVIDIA":
        raise HardwareError(
            f"chip {chip.name}",
            rule="XLA compiles for an absent card only with a plugin that runs without it, and "
            f"there is none for {chip.vendor}",
            cure="Compile on a machine that has the card, or judge this layout by its estimate.",
        )
    if isinstance(chip.link, Domain):
        hosts, each = topology.shape
        return Target(
            platform="gpu",
            # slices x hosts x GPUs a host, as the plugin's option `topology` has them.
            topology_name=f"1x{hosts}x{each}",
            hosts=hosts,
            chip=chip.name,
            devices=topology.devices,
            hbm_limit_bytes=chip.usable_hbm_bytes or chip.hbm_bytes,
            kernel="cudnn",
            one_hot_lookup=False,
            # Without a card there is nothing to time kernels on; memory is the same without.
            flags={"xla_gpu_autotune_level": 0},
        )
    shape = topology.shape
    wrap = topology.wrap + (False,) * (3 - len(shape))
    return Target(
        platform="tpu",
        topology_name=f"{chip.name}:{'x'.join(map(str, shape))}",
        chips_per_host=(min(2, shape[0]), min(2, shape[1]), 1) if len(shape) == 2 else None,
        wrap=(wrap[0], wrap[1], wrap[2]),
        slices=topology.slices,
        # By default a v4 chip is two devices; megacore makes it the one that its users see.
        chip_config="megacore" if chip.name == "v4" else None,
        chip=chip.name,
        devices=topology.devices,
        hbm_limit_bytes=chip.usable_hbm_bytes,
        kernel="splash",
        one_hot_lookup=True,
        flags={"xla_jf_spmd_threshold_for_windowed_einsum_mib": _WINDOWED_EINSUM_MIB},
    )
