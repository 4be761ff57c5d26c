"""Expert axis: an expert axis that divides other axes' ranks, in the terms of a jax mesh.

Experts over 8 of data 4 × tensor 4 ranks lie on all tensor ranks and on 2 of the 4 data ranks
(innermost ranks first, as launchers number them). Dense weights and activations are cut over the
mesh of the layout without its expert axis; experts over a finer one of the same devices, in which
data is an axis of 2 that holds copies and one of 2 that experts are cut over.
"""

from __future__ import annotations

import math

from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, AxisSize, Mesh
from prompts_agent.layout.specs import ATTENTION_DATA, mesh_axes

__all__ = [
    "COPIES",
    "EXPERTS",
    "divides",
    "finer_sizes",
    "parts_of",
    "taken_ranks",
    "without_expert_axis",
]

_INNERMOST = (
    Axis.TENSOR.value, ATTENTION_DATA, Axis.CONTEXT.value, Axis.FSDP.value, Axis.DATA.value
)  # fmt: skip

COPIES, EXPERTS = "_copies", "_experts"
"""Endings of the two parts of an axis that experts take some ranks of."""


def divides(layout: Layout) -> bool:
    """The layout has an expert axis that is no factor of its mesh."""
    return layout.expert_divides and layout.mesh.size(Axis.EXPERT) > 1


def without_expert_axis(layout: Layout) -> Layout:
    """The layout as its dense weights see it: a dividing expert axis is left out."""
    if not divides(layout):
        return layout
    sizes = dict(layout.mesh.root) | {Axis.EXPERT: AxisSize()}
    return layout.model_copy(update={"mesh": Mesh(sizes), "expert_divides": False})


def taken_ranks(layout: Layout) -> dict[str, int]:
    """Axis → over how many of its ranks experts are cut, innermost axis first.

    Empty where the expert axis is a factor of the mesh or has size 1. Whole axes are taken as long
    as they divide what is left of the expert axis, then a part of one; what no axis takes is left
    over, which legality refuses (experts that do not divide the other ranks).
    """
    if not divides(layout):
        return {}
    sizes, left = mesh_axes(without_expert_axis(layout)), layout.mesh.size(Axis.EXPERT)
    taken = {}
    for name in _INNERMOST:
        part = math.gcd(left, sizes.get(name, 1))
        if part > 1:
            taken[name] = part
            left //= part
    return taken


def parts_of(name: str, size: int, taken: int) -> dict[str, int]:
    """An axis in the finer mesh: itself where all or none of it is taken, else two parts.

    >>> parts_of("data", 4, 2)
    {'data_copies': 2, 'data_experts': 2}
    """
    if taken in (1, size):
        return {name: size}
    return {name + COPIES: size // taken, name + EXPERTS: taken}


def finer_sizes(sizes: dict[str, int], taken: dict[str, int]) -> dict[str, int]:
    """The axes of the finer mesh with their sizes, outermost first."""
    found: dict[str, int] = {}
    for name, size in sizes.items():
        found |= parts_of(name, size, taken.get(name, 1))
    return found
