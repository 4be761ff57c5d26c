"""Chip data against data sheets read by hand, not against what the loader printed."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from prompts_agent.errors import HardwareError
from prompts_agent.hardware.catalog import all_chips, chip_names, find_chip
from prompts_agent.hardware.chip import Chip, Domain, Torus

GIB = 2**30

# name, bf16 or fp16 TFLOP/s dense, HBM GiB, HBM GB/s, GB/s one way of an ICI link or of a GPU
DATA_SHEETS = [
    ("v4", 275, 32, 1200, 45),  # docs.cloud.google.com/tpu/docs/v4; link: jax-ml scaling book
    ("v5e", 197, 16, 819, 45),  # docs.cloud.google.com/tpu/docs/v5e; link: scaling book
    ("v5p", 459, 96, 2765, 90),  # docs.cloud.google.com/tpu/docs/v5p; 96 and link: scaling book
    ("v6e", 918, 32, 1638, 90),  # docs.cloud.google.com/tpu/docs/v6e; link: scaling book
    (
        "tpu7x",
        2307 / 2,
        192 // 2,
        7380 / 2,
        100,
    ),  # docs.cloud.google.com/tpu/docs/tpu7x, a chip ÷ 2
    ("a100-40", 312, 40, 1555, 300),  # A100 data sheet: 600 GB/s both ways
    ("a100-80", 312, 80, 2039, 300),  # A100 data sheet
    ("h100", 989.4, 80, 3350, 450),  # H100 data sheet: 1979 with sparsity, 900 GB/s both ways
    ("h200", 989.4, 141, 4800, 450),  # H200 data sheet: 1979 with sparsity
    ("b200", 2250, 180, 7700, 900),  # Blackwell data sheet: 4500 with sparsity, 1.8 TB/s both ways
    ("gb200", 2500, 186, 8000, 900),  # GB200 NVL72: 360 PFLOP/s with sparsity over 72 GPUs
    ("mi300x", 1307.4, 192, 5300, 448),  # MI300X data sheet: 7 links of 128 GB/s both ways
    ("mi355x", 2516.6, 288, 8000, 537.6),  # MI355X data sheet: 7 links of 153.6 GB/s both ways
    ("v100-16", 125, 16, 900, 150),  # V100 data sheet: 300 GB/s both ways
    ("v100-32", 125, 32, 900, 150),  # V100 data sheet
    ("t4", 65, 16, 320, 15.75),  # T4 data sheet; PCIe 3.0 x16
    ("a10", 125, 24, 600, 31.5),  # A10 data sheet: 250 with sparsity; PCIe 4.0 x16
    ("l4", 121, 24, 300, 31.5),  # L4 data sheet: 242 with sparsity
    ("l40s", 362.05, 48, 864, 31.5),  # L40S data sheet: 733 with sparsity
]


@pytest.mark.parametrize(("name", "tflops", "gib", "hbm_gb_per_s", "link_gb_per_s"), DATA_SHEETS)
def test_figures_are_those_of_the_data_sheet(
    name: str, tflops: float, gib: int, hbm_gb_per_s: float, link_gb_per_s: float
) -> None:
    chip = find_chip(name)
    peak = chip.peak_flops["bf16" if "bf16" in chip.peak_flops else "fp16"]
    assert peak == pytest.approx(tflops * 1e12)
    assert chip.hbm_bytes == gib * GIB
    assert chip.hbm_bandwidth_bytes_per_s == pytest.approx(hbm_gb_per_s * 1e9)
    link = chip.link
    bandwidth = (
        link.link_bandwidth_bytes_per_s if isinstance(link, Torus) else link.bandwidth_bytes_per_s
    )
    assert bandwidth == pytest.approx(link_gb_per_s * 1e9)


# Limits printed by the TPU compiler in CompileTimeHbmOom messages, GiB per JAX device.
@pytest.mark.parametrize(
    ("name", "gib"),
    [("v4", 30.75), ("v5e", 15.75), ("v5p", 95.73), ("v6e", 31.24), ("tpu7x", 94.74)],
)
def test_usable_hbm_is_what_the_compiler_allows(name: str, gib: float) -> None:
    usable = find_chip(name).usable_hbm_bytes
    assert usable is not None
    assert usable == pytest.approx(gib * GIB, rel=1e-6)


@pytest.mark.parametrize("chip", all_chips(), ids=lambda chip: chip.name)
def test_every_chip_is_consistent(chip: Chip) -> None:
    assert chip.usable_hbm_bytes is None or chip.usable_hbm_bytes <= chip.hbm_bytes
    assert chip.peak_flops.get("fp8", 1e30) >= chip.peak_flops.get("bf16", 0)
    assert all(source.strip() for source in chip.sources.values())
    assert chip.platform == ("tpu" if isinstance(chip.link, Torus) else "gpu")
    assert (chip.domain_devices is None) == (chip.platform == "tpu")
    assert bool(chip.slice_shapes) == (chip.platform == "tpu")


def test_dtypes_that_the_hardware_lacks_are_absent() -> None:
    assert "bf16" not in find_chip("v100-16").peak_flops  # Volta has fp16 tensor cores only
    assert "fp8" not in find_chip("a100-80").peak_flops  # fp8 came with Hopper and Ada
    assert "fp4" not in find_chip("h100").peak_flops  # fp4 came with Blackwell


def test_domains() -> None:
    assert find_chip("h100").domain_devices == 8
    assert find_chip("gb200").domain_devices == 72
    assert find_chip("gb200").devices_per_host == 4
    assert find_chip("h100-nvl").domain_devices == 2
    assert isinstance(find_chip("t4").link, Domain)


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("TPU v6 Lite", "v6e"),  # device_type_string of a v6e trace
        ("TPU v5 lite", "v5e"),  # device_kind in JAX
        ("TPU v5", "v5p"),  # device_kind in JAX
        ("trillium", "v6e"),
        ("ironwood", "tpu7x"),
        ("NVIDIA H100 80GB HBM3", "h100"),  # nvidia-smi
        ("nvidia a100-sxm4-40gb", "a100-40"),
        ("gfx942", "mi300x"),
        ("V5E", "v5e"),
        ("rtx pro 6000 bse", "rtx-pro-6000"),
    ],
)
def test_aliases(name: str, chip: str) -> None:
    assert find_chip(name).name == chip


def test_every_alias_leads_back_to_its_chip() -> None:
    for chip in all_chips():
        for alias in chip.aliases:
            assert find_chip(alias) is chip


def test_a_name_that_fits_two_memories_is_refused() -> None:
    with pytest.raises(HardwareError, match="several chips") as error:
        find_chip("A100")
    assert "a100-40, a100-80" in error.value.cure


def test_an_unknown_name_lists_near_ones() -> None:
    with pytest.raises(HardwareError) as error:
        find_chip("mi300")
    assert "mi300x" in error.value.cure
    assert "'mi300'" in error.value.value


def test_a_figure_without_a_source_is_refused() -> None:
    data = find_chip("v5e").model_dump()
    del data["sources"]["hbm_bytes"]
    with pytest.raises(ValidationError, match="no source for hbm_bytes"):
        Chip.model_validate(data)


def test_names_are_listed_tpus_first() -> None:
    assert chip_names()[:5] == ("v4", "v5e", "v5p", "v6e", "tpu7x")
