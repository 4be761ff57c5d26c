"""Names and options by which jax is asked for topologies that are not there."""

from __future__ import annotations

import pytest

from prompts_agent.compile.gpu_description import written_description
from prompts_agent.compile.target import target_of
from prompts_agent.compile.toolchain import find_toolchain, how_to_get
from prompts_agent.errors import HardwareError
from prompts_agent.hardware.catalog import all_chips, find_chip
from prompts_agent.hardware.topology import parse_topology


def test_a_2d_slice_wraps_in_dims_of_16_alone() -> None:
    found = target_of(parse_topology("v5e:8x16"))
    assert found.topology_name == "v5e:8x16"
    assert found.wrap == (False, True, False)
    assert found.chips_per_host == (2, 2, 1)


def test_a_3d_slice_of_cubes_wraps_everywhere() -> None:
    assert target_of(parse_topology("v5p:4x4x4")).wrap == (True, True, True)
    assert target_of(parse_topology("v5p:2x2x4")).wrap == (False, False, False)


def test_a_v4_chip_is_one_device_only_as_megacore() -> None:
    assert target_of(parse_topology("v4:4x4x4")).chip_config == "megacore"


def test_slices_and_devices() -> None:
    found = target_of(parse_topology("2*v6e:16x16"))
    assert (found.slices, found.devices) == (2, 512)
    # Two devices a chip: 64 chips are 128 devices.
    assert target_of(parse_topology("tpu7x:4x4x4")).devices == 128


def test_a_gpu_cluster_is_slices_by_hosts_by_gpus() -> None:
    found = target_of(parse_topology("h100:8x8"))
    assert (found.platform, found.topology_name, found.devices) == ("gpu", "1x8x8", 64)
    # device_memory_size of openxla's h100_sxm target.
    assert found.hbm_limit_bytes == 84942979072


def test_a_card_without_a_deviceless_compiler_is_refused() -> None:
    with pytest.raises(HardwareError, match="there is none for AMD"):
        target_of(parse_topology("mi300x:8"))
    assert find_toolchain(find_chip("mi300x")) is None
    assert "plugin for it is built for machines that have the card" in how_to_get(
        find_chip("mi300x")
    )


def test_what_to_install_is_said_for_every_chip() -> None:
    assert "prompts-agent[tpu]" in how_to_get(find_chip("v5p"))
    assert "prompts-agent[gpu]" in how_to_get(find_chip("h100"))


@pytest.mark.parametrize(
    "chip", [c.name for c in all_chips() if c.platform == "gpu" and c.vendor == "NVIDIA"]
)
def test_every_nvidia_card_has_a_description(chip: str) -> None:
    text = written_description(find_chip(chip))
    assert text.startswith("gpu_device_info {\n")
    assert text.count("{") == text.count("}")


def test_the_h100_is_what_its_data_sheet_says() -> None:
    # 132 multiprocessors, 50 MB of L2, 3.35 TB/s, capability 9.0: NVIDIA's H100 data sheet.
    text = written_description(find_chip("h100"))
    for line in (
        "core_count: 132",
        "l2_cache_size: 52428800",
        "memory_bandwidth: 3350000000000",
        "cuda_compute_capability { major: 9 minor: 0 }",
    ):
        assert line in text


def test_an_unknown_card_names_the_known_ones() -> None:
    with pytest.raises(HardwareError, match="Known cards: v100-16"):
        written_description(find_chip("v5e"))
