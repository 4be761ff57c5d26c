"""Axes without a name: what each cuts, told by how many ways the weights and the batch are cut.

Programs of older compilers hold replica groups and no axis names; the measurements then call the
axes `axis0`, `axis1`, …, outermost first.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.program import AxisInUse, TensorShape

__all__ = ["told_axes"]

_UNNAMED = re.compile(r"axis\d+")
_MOST_AXES = 4
_MEANINGS = (Axis.DATA, Axis.FSDP, Axis.TENSOR)


def told_axes(
    mesh: tuple[AxisInUse, ...],
    weights: tuple[TensorShape, ...],
    inputs: tuple[TensorShape, ...],
) -> dict[str, Axis]:
    """Name → what the axis is, where only one reading explains both cuts; else empty.

    Mesh 2 × 4, weights in 4 shards and the batch in 2: the first is data and the second tensor.
    With a batch in 8 and weights in 4, the first is data and the second fsdp.
    """
    used = [axis for axis in mesh if axis.size > 1]
    ways, batch = _weight_ways(weights), _batch_ways(inputs)
    unnamed = all(_UNNAMED.fullmatch(axis.name) for axis in used)
    if not used or not unnamed or len(used) > _MOST_AXES or ways is None or batch is None:
        return {}
    fitting = [
        reading
        for reading in itertools.product(_MEANINGS, repeat=len(used))
        if _cut(used, reading, {Axis.FSDP, Axis.TENSOR}) == ways
        and _cut(used, reading, {Axis.DATA, Axis.FSDP}) == batch
    ]
    if len(fitting) != 1:
        return {}
    return {axis.name: meaning for axis, meaning in zip(used, fitting[0], strict=True)}


def _cut(used: list[AxisInUse], reading: tuple[Axis, ...], by: set[Axis]) -> int:
    return math.prod(a.size for a, meaning in zip(used, reading, strict=True) if meaning in by)


def _weight_ways(weights: tuple[TensorShape, ...]) -> int | None:
    """The commonest number of shards of a matrix, by elements."""
    elements: Counter[int] = Counter()
    for weight in weights:
        if weight.ways is not None and weight.shape is not None and len(weight.shape) >= 2:
            elements[weight.ways] += math.prod(weight.shape)
    # The smaller number breaks a tie, so that equal programs read the same.
    return min(elements, key=lambda ways: (-elements[ways], ways), default=None)


def _batch_ways(inputs: tuple[TensorShape, ...]) -> int | None:
    """In how many shards the largest batch × sequence input is cut; None where its sequence is."""
    tokens = [t for t in inputs if t.shape is not None and len(t.shape) == 2 and t.tiles]
    if not tokens:
        return None
    largest = max(tokens, key=lambda t: math.prod(t.shape or ()))
    tiles = largest.tiles or ()
    return tiles[0] if all(tile == 1 for tile in tiles[1:]) else None
