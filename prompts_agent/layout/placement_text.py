"""Where each axis of a layout lies, in words: on which torus dims, in which domain, over what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.chip import Domain
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.domains import domain_size
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.torus import Torus, torus_of

__all__ = ["placement_text"]


def placement_text(layout: Layout, topology: Topology) -> str:
    """A clause an axis larger than one, outermost first; empty on one device.

    "data 8 is one whole torus dim of 4 without wrap-around × 2 of a torus dim of 4, 2 apart; tensor
    2 is 2 of a torus dim of 4". Axes take dims as `prompts_agent.layout.placement` has it.
    """
    torus = torus_of(topology)
    inside = _in_domain(layout, topology) if torus is None else _on_torus(layout, torus)
    slices = "slices" if torus is not None else "domains"
    clauses = []
    for axis, size in layout.mesh.used().items():
        here, across = inside.get(axis), layout.mesh[axis].dcn
        parts = [here] if here is not None else []
        parts += [f"{across} across {slices}, over the network"] if across > 1 else []
        clauses.append(f"{axis} {size} is {' × '.join(parts)}")
    return "; ".join(clauses)


def _in_domain(layout: Layout, topology: Topology) -> dict[Axis, str]:
    link = find_chip(topology.chip).link
    name = link.technology.split(",")[0] if isinstance(link, Domain) else "the fast links"
    size = domain_size(topology)
    return {
        axis: f"{layout.mesh[axis].ici} of {size} devices joined by {name}"
        for axis in layout.mesh.used()
        if layout.mesh[axis].ici > 1
    }


def _on_torus(layout: Layout, torus: Torus) -> dict[Axis, str]:
    """Axis by axis from the innermost, as `place` lays them; a misfit has no words."""
    start = (1,) * len(torus.dims)
    taken: tuple[int, ...] = start
    found: dict[Axis, str] = {}
    for axis in reversed(Axis):
        size = layout.mesh[axis].ici
        if size == 1:
            continue
        apart = axis is Axis.EXPERT and layout.expert_divides
        before = start if apart else taken
        share = torus.take(before, size)
        if share is None:
            return {}
        found[axis] = " × ".join(_dims(torus, share.factors, before))
        if not apart:
            taken = tuple(t * f for t, f in zip(taken, share.factors, strict=True))
    return found


def _dims(torus: Torus, factors: tuple[int, ...], before: tuple[int, ...]) -> Iterator[str]:
    """Whole dims first, those of one kind counted; then the pair of a chip and parts of dims."""
    dims = list(zip(factors, before, torus.dims, torus.wrap, strict=True))
    pair = dims.pop(0) if torus.pair else None
    whole = Counter((dim, wraps) for count, _, dim, wraps in dims if 1 < count == dim)
    for (dim, wraps), number in whole.items():
        noun = f"{number} whole torus dims" if number > 1 else "one whole torus dim"
        yield f"{noun} of {dim} {'with' if wraps else 'without'} wrap-around"
    if pair is not None and pair[0] > 1:
        yield "the 2 devices of a chip"
    for count, stride, dim, _ in dims:
        if 1 < count < dim:
            yield f"{count} of a torus dim of {dim}" + (f", {stride} apart" if stride > 1 else "")
