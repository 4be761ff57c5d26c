from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.errors import HardwareError
from prompts_agent.hardware.catalog import chip_names, find_chip
from prompts_agent.hardware.topology import Topology, parse_topology


@pytest.mark.parametrize(
    ("text", "written", "devices", "wrap"),
    [
        ("v5e:4x4", "v5e:4x4", 16, (False, False)),
        ("v5e:8x16", "v5e:8x16", 128, (False, True)),  # only the dim that spans the pod
        ("2*v5e:16x16", "2*v5e:16x16", 512, (True, True)),
        ("v5e:16x16*2", "2*v5e:16x16", 512, (True, True)),
        ("v6e:4x2", "v6e:2x4", 8, (False, False)),
        ("v5p:8x8x8", "v5p:8x8x8", 512, (True, True, True)),
        ("v5p:2x4x4", "v5p:2x4x4", 32, (False, False, False)),  # half a cube: no optical links
        ("v4:4x4x8", "v4:4x4x8", 128, (True, True, True)),
        ("tpu7x:2x2x1", "tpu7x:2x2x1", 8, (False, False, False)),  # 4 chips of 2 devices
        ("tpu7x:4x4x4", "tpu7x:4x4x4", 128, (True, True, True)),
        ("h100:8x8", "h100:8x8", 64, (False, False)),
        ("h100:8", "h100:1x8", 8, (False, False)),
        ("TPU v6 Lite:2x4", "v6e:2x4", 8, (False, False)),
    ],
)
def test_parse(text: str, written: str, devices: int, wrap: tuple[bool, ...]) -> None:
    topology = parse_topology(text)
    assert str(topology) == written
    assert topology.devices == devices
    assert topology.wrap == wrap


@pytest.mark.parametrize(
    ("text", "devices", "hosts"),
    [
        ("v5e:2x4", 8, 1),
        ("v5e:16x16", 256, 32),  # 8 chips a host
        ("2*v5e:16x16", 256, 64),
        ("v5p:4x4x4", 64, 16),  # 4 chips a host
        ("tpu7x:4x4x4", 128, 16),  # 4 chips of 2 devices a host
        ("h100:8x8", 8, 8),
        ("h100:2x4", 4, 2),  # half-filled nodes
        ("gb200:18x4", 72, 18),
        ("gb200:36x4", 72, 36),  # two racks
        ("gb200:2x4", 8, 2),
        ("l4:2x8", 8, 2),
        ("h100-nvl:1x8", 2, 1),  # bridges join pairs
    ],
)
def test_domain_and_hosts(text: str, devices: int, hosts: int) -> None:
    topology = parse_topology(text)
    assert topology.domain_devices == devices
    assert topology.hosts == hosts


def test_an_illegal_shape_names_the_legal_ones() -> None:
    with pytest.raises(HardwareError) as error:
        parse_topology("v5e:3x5")
    assert error.value.value == "topology v5e:3x5"
    assert "16x16" in error.value.cure


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v5e",
        "v5e:",
        "v5e:4x",
        "v5e:4x4x4",
        "v5e:0x4",
        "v5p:4x4x6",
        "v5p:16x20x28",
        "0*v5e:4x4",
        "2*h100:8x8",
        "h100:16",
        "h100:0",
        "h100:8x9",
        "h100:2x2x2",
        "x:4x4",
        "A100:8",
    ],
)
def test_bad_topologies_are_refused(text: str) -> None:
    with pytest.raises(HardwareError):
        parse_topology(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        # v5p-512 is 256 chips for the cloud and 512 chips (8x8x8) in papers.
        ("v5p-512", ("v5p:4x8x8 if 512 counts TensorCores", "v5p:8x8x8 if 512 counts chips")),
        ("v4-128", ("v4:4x4x4 if 128 counts TensorCores",)),
        ("v5e-256", ("v5e:16x16 if 256 counts chips",)),
        ("v5litepod-16", ("v5e:4x4",)),
    ],
)
def test_the_dash_form_is_refused_with_its_readings(text: str, meant: tuple[str, ...]) -> None:
    with pytest.raises(HardwareError, match="TensorCores") as error:
        parse_topology(text)
    for reading in meant:
        assert reading in error.value.cure


@pytest.mark.parametrize(
    ("chip", "devices", "written"),
    [
        ("v5e", 1, "v5e:1x1"),
        ("v5e", 256, "v5e:16x16"),
        ("v5e", 512, "2*v5e:16x16"),
        ("v5e", 384, "3*v5e:8x16"),
        ("v5p", 64, "v5p:4x4x4"),
        ("v5p", 256, "v5p:4x8x8"),  # not 4x4x16
        ("tpu7x", 128, "tpu7x:4x4x4"),
        ("h100", 4, "h100:1x4"),
        ("h100", 64, "h100:8x8"),
        ("gb200", 72, "gb200:18x4"),
    ],
)
def test_for_device_count(chip: str, devices: int, written: str) -> None:
    assert str(Topology.for_device_count(find_chip(chip), devices)) == written


@pytest.mark.parametrize(
    ("chip", "devices"),
    [("v5e", 12), ("v5e", 0), ("v5e", -4), ("v5e", 513), ("tpu7x", 3), ("h100", 12), ("h100", 0)],
)
def test_a_count_that_no_shape_has_is_refused(chip: str, devices: int) -> None:
    with pytest.raises(HardwareError):
        Topology.for_device_count(find_chip(chip), devices)


def test_stored_topologies_are_checked_too() -> None:
    with pytest.raises(HardwareError):
        Topology.model_validate({"chip": "v5e", "shape": [3, 5]})
    with pytest.raises(HardwareError, match="listed order"):
        Topology(chip="v5e", shape=(4, 2))
    stored = parse_topology("2*v5p:4x4x8")
    assert Topology.model_validate_json(stored.model_dump_json()) == stored


@given(st.data())
def test_text_round_trip(data: st.DataObject) -> None:
    chip = find_chip(data.draw(st.sampled_from(chip_names())))
    if chip.platform == "tpu":
        shape = data.draw(st.sampled_from(chip.slice_shapes))
        topology = Topology.of(chip, shape, slices=data.draw(st.integers(1, 9)))
    else:
        nodes = data.draw(st.integers(1, 512))
        topology = Topology.of(chip, (nodes, data.draw(st.integers(1, chip.devices_per_host))))
    assert parse_topology(str(topology)) == topology
    assert topology.devices % topology.domain_devices == 0 or chip.platform == "gpu"


@given(st.lists(st.integers(1, 6), min_size=3, max_size=3))
def test_cubes_are_legal_in_any_order(cubes: list[int]) -> None:
    shape = tuple(4 * cube for cube in cubes)
    if math.prod(shape) > 6144:
        with pytest.raises(HardwareError):
            Topology.of(find_chip("v5p"), shape)
        return
    topology = Topology.of(find_chip("v5p"), shape)
    assert topology.shape == tuple(sorted(shape))
    assert topology.wrap == (True, True, True)


@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused_by_name(text: str) -> None:
    try:
        topology = parse_topology(text)
    except HardwareError:
        return
    assert topology.devices > 0
