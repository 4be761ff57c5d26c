"""Where axes lie, in words; the shares are those of the tests of the torus."""

from __future__ import annotations

import pytest

from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.layout.placement_text import placement_text


@pytest.mark.parametrize(
    ("hardware", "mesh", "text"),
    [
        # v5e wraps a dim of 16 and none below.
        (
            "v5e:16x16",
            {"fsdp": 16, "tensor": 16},
            "fsdp 16 is one whole torus dim of 16 with wrap-around; "
            "tensor 16 is one whole torus dim of 16 with wrap-around",
        ),
        (
            "v5e:4x4",
            {"data": 8, "tensor": 2},
            "data 8 is one whole torus dim of 4 without wrap-around × 2 of a torus dim of 4, "
            "2 apart; tensor 2 is 2 of a torus dim of 4",
        ),
        ("v5e:16x16", {"data": 256}, "data 256 is 2 whole torus dims of 16 with wrap-around"),
        ("v5e:1x1", {}, ""),
        (
            "2*v5e:4x4",
            {"data": {"ici": 1, "dcn": 2}, "fsdp": 16},
            "data 2 is 2 across slices, over the network; "
            "fsdp 16 is 2 whole torus dims of 4 without wrap-around",
        ),
        (
            "h100:2x8",
            {"data": {"ici": 2, "dcn": 2}, "tensor": 4},
            "data 4 is 2 of 8 devices joined by NVLink 4 × 2 across domains, over the network; "
            "tensor 4 is 4 of 8 devices joined by NVLink 4",
        ),
    ],
)
def test_every_axis_says_where_it_lies(hardware: str, mesh: dict[str, object], text: str) -> None:
    layout = Layout(mesh=Mesh.model_validate(mesh))
    assert placement_text(layout, parse_topology(hardware)) == text


def test_the_pair_on_a_chip_is_the_innermost_dim() -> None:
    # tpu7x has two devices a chip; 2x2x1 chips are 8 devices.
    layout = Layout(mesh=Mesh.of(data=4, tensor=2))
    text = placement_text(layout, parse_topology("tpu7x:2x2x1"))
    assert text.endswith("tensor 2 is the 2 devices of a chip")


def test_an_expert_axis_that_divides_lies_over_the_innermost_ranks() -> None:
    layout = Layout(mesh=Mesh.of(data=4, tensor=4, expert=4), expert_divides=True)
    text = placement_text(layout, parse_topology("v5e:4x4"))
    assert "expert 4 is one whole torus dim of 4" in text
