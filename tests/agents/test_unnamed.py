"""What axes without a name cut, from the cuts of weights and batch."""

from __future__ import annotations

import pytest

from prompts_agent.agents.unnamed import told_axes
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.program import AxisInUse, TensorShape


def mesh(*sizes: int) -> tuple[AxisInUse, ...]:
    return tuple(AxisInUse(name=f"axis{i}", size=size) for i, size in enumerate(sizes))


def weight(*tiles: int) -> TensorShape:
    return TensorShape(name="w", dtype="bf16", local_shape=(512, 512), tiles=tiles)


def tokens(*tiles: int) -> TensorShape:
    return TensorShape(name="tokens", dtype="s32", local_shape=(8, 256), tiles=tiles)


@pytest.mark.parametrize(
    ("sizes", "weights", "batch", "expected"),
    [
        ((2, 4), (1, 4), (2, 1), [Axis.DATA, Axis.TENSOR]),
        ((2, 4), (4, 1), (8, 1), [Axis.DATA, Axis.FSDP]),
        ((4, 2), (4, 2), (4, 1), [Axis.FSDP, Axis.TENSOR]),
        ((8,), (8, 1), (8, 1), [Axis.FSDP]),
        ((8,), (1, 1), (8, 1), [Axis.DATA]),
        ((2, 4, 8), (4, 8), (8, 1), [Axis.DATA, Axis.FSDP, Axis.TENSOR]),
        ((4, 4), (4, 4), (4, 1), None),  # which of the two is fsdp, nothing tells
        ((2, 4), (1, 4), (2, 2), None),  # the sequence is cut as well
        ((2, 4), (1, 3), (2, 1), None),  # no reading explains it
    ],
)
def test_axes_are_told_by_what_they_cut(
    sizes: tuple[int, ...],
    weights: tuple[int, int],
    batch: tuple[int, int],
    expected: list[Axis] | None,
) -> None:
    told = told_axes(mesh(*sizes), (weight(*weights),), (tokens(*batch),))
    assert list(told.values()) == (expected or [])


def test_named_axes_are_left_to_their_names() -> None:
    named = (AxisInUse(name="data", size=2), AxisInUse(name="axis1", size=4))
    assert told_axes(named, (weight(1, 4),), (tokens(2, 1),)) == {}
    assert told_axes((), (weight(1, 4),), (tokens(2, 1),)) == {}
    assert told_axes(mesh(2, 4), (), (tokens(2, 1),)) == {}
