"""Rules about the mesh alone: products of axes, fast domains, and what the space allows."""

from __future__ import annotations

import math

import numpy as np

from prompts_agent.layout.domains import (
    DIVIDED_BY_EXPERT,
    EXPERT,
    domain_size,
    domains,
    fill,
    fill_with_divided,
    mesh_over_domains,
)
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.rule import BoolColumn, IntColumn, Rule, Words, factors, truth
from prompts_agent.layout.space import SERVING_AXES, Space
from prompts_agent.layout.table import LayoutTable

__all__ = ["MESH_RULES"]


def _counted(sizes: IntColumn, expert_divides: BoolColumn) -> IntColumn:
    """Products of the rows of `sizes` (n, 6), the expert axis left out where it divides others."""
    product: IntColumn = np.prod(sizes, axis=1)
    counted: IntColumn = np.where(expert_divides, product // sizes[:, EXPERT], product)
    return counted


def _devices(table: LayoutTable, space: Space) -> BoolColumn:
    product = _counted(table.ici * table.dcn, table.expert_divides)
    return truth(product == space.topology.devices)


def _spelled(layout: Layout, part: str) -> str:
    """`data 2 × tensor 4 = 8`, without the axes of one.

    An expert axis that divides others is not in the product.
    """
    counted = [a for a in Axis if not (a is Axis.EXPERT and layout.expert_divides)]
    sizes = {axis.value: getattr(layout.mesh[axis], part) for axis in counted}
    used = [f"{name} {size}" for name, size in sizes.items() if size > 1]
    return f"{' × '.join(used) or 'every axis 1'} = {math.prod(sizes.values())}"


def _devices_words(layout: Layout, space: Space) -> Words:
    count = space.topology.devices
    spelled = f"{_spelled(layout, 'size')} devices" if layout.devices > 1 else "one device"
    return Words(
        f"{spelled}; {space.topology} has {count}",
        f"Change axes until their product is {count}.",
    )


def _domain(table: LayoutTable, space: Space) -> BoolColumn:
    inside = _counted(table.ici, table.expert_divides) == domain_size(space.topology)
    across = _counted(table.dcn, table.expert_divides) == domains(space.topology)
    return truth(inside & across)


def _domain_words(layout: Layout, space: Space) -> Words:
    size, count = domain_size(space.topology), domains(space.topology)
    degrees = {axis: layout.mesh.size(axis) for axis in Axis}
    split = mesh_over_domains(degrees, size, expert_divides=layout.expert_divides)
    crossing = [f"{a} ici {s.ici} × dcn {s.dcn}" for a, s in split.root.items() if s.dcn > 1]
    return Words(
        f"inside a fast domain {_spelled(layout, 'ici')} of {size} devices; "
        f"across domains {_spelled(layout, 'dcn')} of {count} domains",
        f"Fill the domain with the inner axes, e.g. {', '.join(crossing) or 'dcn 1 everywhere'}.",
        quiet=count == 1,
    )


def _divided(table: LayoutTable, _space: Space) -> BoolColumn:
    columns = list(DIVIDED_BY_EXPERT)
    inside = np.prod(table.ici[:, columns], axis=1) % table.ici[:, EXPERT] == 0
    across = np.prod(table.dcn[:, columns], axis=1) % table.dcn[:, EXPERT] == 0
    return truth(~table.expert_divides | (inside & across))


def _divided_words(layout: Layout, _space: Space) -> Words:
    if not layout.expert_divides:
        return Words("expert is a factor of the mesh", "", quiet=True)
    divided = (Axis.DATA, Axis.FSDP, Axis.CONTEXT, Axis.TENSOR)
    sizes = {axis.value: layout.mesh.size(axis) for axis in divided}
    ranks, expert = math.prod(sizes.values()), layout.mesh.size(Axis.EXPERT)
    return Words(
        f"{factors(sizes)} = {ranks} ranks, divided by expert {expert}, inside a domain and across "
        "domains",
        f"Choose an expert that divides {ranks}.",
        quiet=expert == 1,
    )


def _rank_order(table: LayoutTable, space: Space) -> BoolColumn:
    if not space.rank_order:
        return np.ones(len(table), dtype=np.bool_)
    degrees, size = table.ici * table.dcn, domain_size(space.topology)
    plain, _ = fill(degrees, size)
    divided, _ = fill_with_divided(degrees, size)
    expected = np.where(table.expert_divides[:, None], divided, plain)
    return truth(np.all(table.ici == expected, axis=1))


def _rank_order_words(layout: Layout, space: Space) -> Words:
    if not space.rank_order:
        return Words("axes may lie inside and across domains as one likes", "", quiet=True)
    degrees = {axis: layout.mesh.size(axis) for axis in Axis}
    size = domain_size(space.topology)
    expected = mesh_over_domains(degrees, size, expert_divides=layout.expert_divides)
    inside = [f"{axis} {layout.mesh[axis].ici}" for axis in layout.mesh.used()]
    wanted = [f"{axis} {expected[axis].ici}" for axis in expected.used()]
    return Words(
        f"inside a domain {', '.join(inside) or 'nothing'}; ranks numbered innermost first give "
        f"{', '.join(wanted) or 'nothing'}",
        "Give degrees alone, and the split follows.",
        quiet=domains(space.topology) == 1,
    )


def _allowed(table: LayoutTable, space: Space) -> BoolColumn:
    ok = np.ones(len(table), dtype=np.bool_)
    for k, axis in enumerate(Axis):
        low, high = _bounds(axis, space)
        size = table.ici[:, k] * table.dcn[:, k]
        ok &= size >= low
        if high is not None:
            ok &= size <= high
        if axis not in space.dcn_axes:
            ok &= table.dcn[:, k] == 1
    return ok


def _bounds(axis: Axis, space: Space) -> tuple[int, int | None]:
    if axis not in space.axes:
        return 1, 1
    return space.min_degree.get(axis, 1), space.max_degree.get(axis)


def _allowed_words(layout: Layout, space: Space) -> Words:
    broken = []
    for axis in Axis:
        low, high = _bounds(axis, space)
        size = layout.mesh.size(axis)
        if size < low or (high is not None and size > high):
            limit = f"at least {low}" if size < low else f"at most {high}"
            broken.append(f"{axis} {size}, {limit} allowed")
        if layout.mesh[axis].dcn > 1 and axis not in space.dcn_axes:
            broken.append(f"{axis} crosses domains, which is not allowed")
    # Without a word from the user, a server has the axes that every serving framework offers.
    usual = set(Axis) if space.training else set(SERVING_AXES)
    bounded = space.min_degree or space.max_degree or set(space.dcn_axes) != set(Axis)
    return Words(
        "; ".join(broken) or "every axis is within the workload's constraints",
        "Keep to the workload's constraints, or loosen them.",
        quiet=not bounded and usual <= set(space.axes),
    )


def _serving_axes(table: LayoutTable, space: Space) -> BoolColumn:
    if space.training:
        return np.ones(len(table), dtype=np.bool_)
    return truth(table.size(Axis.FSDP) == 1)


def _serving_axes_words(layout: Layout, space: Space) -> Words:
    if space.training:
        return Words("training may use every axis", "", quiet=True)
    return Words(
        f"fsdp {layout.mesh.size(Axis.FSDP)} in serving: every token would gather the weights",
        "Use tensor to cut weights and data for replicas.",
        quiet=True,
    )


def _near(table: LayoutTable, _space: Space) -> BoolColumn:
    ok = np.ones(len(table), dtype=np.bool_)
    for axis in (Axis.TENSOR, Axis.CONTEXT):
        ok &= table.dcn[:, list(Axis).index(axis)] == 1
    return ok


def _near_words(layout: Layout, space: Space) -> Words:
    busy = [a for a in (Axis.TENSOR, Axis.CONTEXT) if layout.mesh.size(a) > 1]
    far = [a for a in busy if layout.mesh[a].dcn > 1]
    # MaxText's base.yml marks dcn_tensor_parallelism and dcn_sequence_parallelism
    # "never recommended".
    text = " and ".join(f"{a} crosses domains (dcn {layout.mesh[a].dcn})" for a in far)
    near = " and ".join(f"{a} {layout.mesh.size(a)}" for a in busy)
    return Words(
        f"{text}; it communicates in every layer" if far else f"{near} inside one domain",
        "Put pipeline, data or fsdp across domains instead.",
        quiet=not busy or domains(space.topology) == 1,
    )


MESH_RULES: tuple[Rule, ...] = (
    Rule(name="devices", mask=_devices, words=_devices_words, early="always"),
    Rule(name="domains", mask=_domain, words=_domain_words, early="always"),
    Rule(name="expert_divides", mask=_divided, words=_divided_words, early="always"),
    Rule(name="rank_order", mask=_rank_order, words=_rank_order_words, early="always"),
    Rule(name="constraints", mask=_allowed, words=_allowed_words, early="always"),
    Rule(name="serving_axes", mask=_serving_axes, words=_serving_axes_words, early="always"),
    Rule(name="near_axes", mask=_near, words=_near_words, forbids=False),
)
