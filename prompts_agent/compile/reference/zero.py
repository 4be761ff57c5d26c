"""Zero: how far ZeRO-1 cuts a weight's master copy and its optimizer state.

Frameworks cut a flat buffer of all of them, so every rank holds the same bytes. A program of named
dims has none: here each tensor is cut along one dim, whichever gives about those bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from prompts_agent.compile.reference.weights import Weight
from prompts_agent.layout.specs import Entry

__all__ = ["cut_further"]


def cut_further(weight: Weight, axes: tuple[str, ...], sizes: Mapping[str, int]) -> Weight:
    """`weight` cut over `axes` too, which hold copies of it; as it is where it is too small.

    The embed dim takes them where they divide it, else the largest dim that they divide. Where they
    divide none, embed is padded: 12288 over 56 ranks is 12320, a quarter of a hundredth more.
    """
    used = {axis for entry in weight.spec for axis in _names(entry)}
    axes = tuple(axis for axis in axes if sizes[axis] > 1 and axis not in used)
    first = weight.embed_dim
    if first is None or not axes:
        return weight

    def ways(dim: int) -> int:
        return math.prod(sizes[axis] for axis in (*axes, *_names(weight.spec[dim])))

    others = sorted(range(len(weight.shape)), key=lambda dim: -weight.shape[dim])
    dim = next((dim for dim in (first, *others) if weight.shape[dim] % ways(dim) == 0), first)
    shape, spec = list(weight.shape), list(weight.spec)
    shape[dim] = -(-shape[dim] // ways(dim)) * ways(dim)
    wider = (*axes, *_names(spec[dim]))
    spec[dim] = wider if len(wider) > 1 else wider[0]
    return replace(weight, shape=tuple(shape), spec=tuple(spec))


def _names(entry: Entry) -> tuple[str, ...]:
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
