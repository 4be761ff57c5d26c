from __future__ import annotations

import itertools
import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.errors import LayoutError
from prompts_agent.layout import enumerate as enumeration
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.legality import check, legal
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.layout.space import SERVING_AXES, Space
from prompts_agent.layout.table import LayoutTable
from prompts_agent.model.spec import ModelSpec

from .conftest import DENSE, MOE, MakeSpace

ANY = {
    "sequence_parallel": (False,),
    "remat": (Remat.FULL,),
    "microbatches": (1,),
    "virtual_stages": (1,),
}


@pytest.mark.parametrize(
    ("hardware", "axes", "expected"),
    [
        # The paper's search spaces: C(n + k − 1, k − 1) meshes of 2ⁿ chips over k axes.
        ("v5e:16x16", (Axis.DATA, Axis.FSDP, Axis.CONTEXT, Axis.TENSOR), 165),
        ("v5p:8x8x8", (Axis.DATA, Axis.CONTEXT, Axis.TENSOR), 55),
        ("v6e:4x4", (Axis.DATA, Axis.FSDP, Axis.CONTEXT, Axis.TENSOR), 35),
        ("v6e:8x16", (Axis.DATA, Axis.CONTEXT, Axis.TENSOR), 36),
        # Two slices: the second factor chooses its axis freely.
        ("2*v5e:2x2", (Axis.DATA, Axis.FSDP), 3 * 2),
    ],
)
def test_counts_without_knobs(
    make_space: MakeSpace, dense: ModelSpec, hardware: str, axes: tuple[Axis, ...], expected: int
) -> None:
    # Dims that every power of two divides, so that no rule drops a mesh.
    model = dense.model_copy(update={"heads": 512, "kv_heads": 512, "mlp": 2**14, "embed": 4096})
    found = enumerate_layouts(make_space(hardware, model, global_batch=512, axes=axes, **ANY))
    assert (found.meshes, len(found.table)) == (expected, expected)
    assert found.considered == expected


def every_layout(space: Space) -> set[Layout]:
    """All combinations of every value that a field can take, kept where they are legal."""
    devices = space.topology.devices
    domain = min(space.topology.domain_devices, devices)
    divides = space.expert_divides
    sizes = itertools.product(_products(domain, divides), _products(devices // domain, divides))
    meshes = [
        Mesh.model_validate(
            {a.value: {"ici": i, "dcn": d} for a, i, d in zip(Axis, ici, dcn, strict=True)}
        )
        for ici, dcn in sizes
    ]
    layouts = [
        Layout(mesh=mesh, expert_divides=divides, **knobs)
        for mesh, knobs in itertools.product(meshes, _knobs(space))
    ]
    kept = legal(LayoutTable.of(layouts), space)
    return {layout for layout, ok in zip(layouts, kept, strict=True) if ok}


def _products(number: int, divides: bool) -> list[tuple[int, ...]]:
    divs = [d for d in range(1, number + 1) if number % d == 0]
    expert = list(Axis).index(Axis.EXPERT)
    return [
        sizes
        for sizes in itertools.product(divs, repeat=6)
        if math.prod(sizes) // (sizes[expert] if divides else 1) == number
    ]


def _knobs(space: Space) -> list[dict[str, Any]]:
    if not space.training:
        return [
            {"attention_data": groups, "remat": Remat.NONE}
            for groups in range(1, space.topology.devices + 1)
        ]
    batches = range(1, space.global_batch + 1)
    return [
        {
            "microbatch": microbatch,
            "gradient_accumulation": accumulation,
            "sequence_parallel": switch,
            "remat": remat,
            "virtual_stages": chunks,
            "schedule": "interleaved" if chunks > 1 else "1f1b",
        }
        for microbatch, accumulation in itertools.product(batches, batches)
        if space.global_batch % (microbatch * accumulation) == 0
        for switch, remat in itertools.product((False, True), space.remat)
        for chunks in range(1, space.model.layers + 1)
        if space.model.layers % chunks == 0
    ]


SMALL = {"layers": 6, "embed": 12, "heads": 6, "kv_heads": 2, "mlp": 24}


@pytest.mark.parametrize(
    ("hardware", "model", "settings"),
    [
        ("v5e:2x2", DENSE, {"global_batch": 4}),
        ("2*v5e:2x2", DENSE, {"global_batch": 4, "remat": (Remat.FULL,)}),
        ("2*v5e:1x1", MOE, {"global_batch": 4}),
        ("h100:1x6", DENSE, {"global_batch": 12, "remat": (Remat.FULL,)}),
        ("h100:2x2", MOE, {"global_batch": 4, "free_split": False, "remat": (Remat.NONE,)}),
        ("h100:2x2", MOE, {"global_batch": 2, "expert_divides": True, "remat": (Remat.FULL,)}),
        ("h100:1x6", MOE, {"global_batch": 6, "training": False}),
        ("v5e:2x4", DENSE, {"global_batch": 8, "training": False, "axes": SERVING_AXES}),
    ],
)
def test_equals_brute_force(
    make_space: MakeSpace, hardware: str, model: ModelSpec, settings: dict[str, Any]
) -> None:
    small = model.model_copy(update=SMALL)
    space = make_space(hardware, small, **({"sequence": 24} | settings))
    found = enumerate_layouts(space)
    layouts = [found.table.row(i) for i in range(len(found.table))]
    assert len(set(layouts)) == len(layouts)
    assert set(layouts) == every_layout(space)
    assert layouts


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["v5e:2x2", "4*v5e:1x1", "3*v5e:1x1", "h100:1x6", "h100:3x1", "h100:2x2"]),
    st.sampled_from([DENSE, MOE]),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from([1, 2, 3, 6]),
    st.integers(1, 7),
    st.booleans(),
    st.booleans(),
)
def test_equals_brute_force_whatever_the_dims(
    hardware: str,
    model: ModelSpec,
    layers: int,
    heads_a_kv_head: int,
    kv_heads: int,
    batch: int,
    training: bool,
    divides: bool,
) -> None:
    from prompts_agent.hardware.topology import parse_topology

    dims = SMALL | {"layers": layers, "heads": heads_a_kv_head * kv_heads, "kv_heads": kv_heads}
    space = Space(
        model=model.model_copy(update=dims),
        topology=parse_topology(hardware),
        training=training,
        global_batch=batch,
        sequence=24,
        remat=(Remat.FULL,),
        expert_divides=divides and model is MOE,
        free_split=hardware[0] != "h" or divides,
        **({} if training else {"axes": SERVING_AXES}),
    )
    table = enumerate_layouts(space).table
    layouts = [table.row(i) for i in range(len(table))]
    assert len(set(layouts)) == len(layouts)
    assert set(layouts) == {one for one in every_layout(space) if training or _in_replica(one)}


def _in_replica(layout: Layout) -> bool:
    """Experts lie on ranks of one replica: data ranks that share them are its attention groups."""
    sizes = layout.mesh
    ranks = sizes.size(Axis.CONTEXT) * sizes.size(Axis.TENSOR) * sizes.size(Axis.FSDP)
    return not layout.expert_divides or ranks % sizes.size(Axis.EXPERT) == 0


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["v5e:4x4", "2*v5e:2x4", "h100:2x8", "h100:3x8", "v5p:4x4x4", "gb200:18x4"]),
    st.sampled_from([DENSE, MOE]),
    st.sampled_from([8, 48, 96, 256]),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_every_row_passes_every_check(
    hardware: str, model: ModelSpec, batch: int, training: bool, divides: bool, random: Any
) -> None:
    from prompts_agent.hardware.topology import parse_topology

    model = model.model_copy(update={"heads": 48, "kv_heads": 12, "layers": 36, "mlp": 9216})
    space = Space(
        model=model,
        topology=parse_topology(hardware),
        training=training,
        global_batch=batch,
        sequence=4096,
        expert_divides=divides,
    )
    table = enumerate_layouts(space).table
    assert legal(table, space).all()
    for i in random.sample(range(len(table)), min(5, len(table))):
        layout = table.row(i)
        assert all(c.ok or not c.forbids for c in check(layout, space)), layout
        assert layout.devices == space.topology.devices
        same = LayoutTable.of([layout])
        one = table.take(np.array([i]))
        assert all(np.array_equal(getattr(same, f.name), getattr(one, f.name)) for f in fields(one))


def test_the_order_is_the_same_each_time(make_space: MakeSpace) -> None:
    space = make_space("2*v5e:4x4")
    first, second = enumerate_layouts(space).table, enumerate_layouts(space).table
    assert all(
        np.array_equal(getattr(first, f.name), getattr(second, f.name)) for f in fields(first)
    )


def test_considered_counts_refused_meshes_once(make_space: MakeSpace) -> None:
    # Four devices over data and tensor: (1, 4), (2, 2), (4, 1). Batch 2 refuses data 4; the others
    # have as many layouts as divisors of their shard's batch of 2 and 1.
    settings = ANY | {"microbatches": ()}
    space = make_space("v5e:2x2", global_batch=2, axes=(Axis.DATA, Axis.TENSOR), **settings)
    found = enumerate_layouts(space)
    assert (found.meshes, found.considered, len(found.table)) == (3, 1 + 2 + 1, 3)


def test_no_layout_is_an_empty_table(make_space: MakeSpace) -> None:
    found = enumerate_layouts(make_space("v5e:4x4", axes=()))
    assert len(found.table) == 0
    assert len(found.table.devices) == 0


def test_too_many_layouts_ask_for_constraints(
    make_space: MakeSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enumeration, "MAX_ROWS", 100)
    with pytest.raises(LayoutError, match=r"more than 100 legal layouts.*constraints"):
        enumerate_layouts(make_space("v5e:4x4"))


def test_non_powers_of_two(make_space: MakeSpace, dense: ModelSpec) -> None:
    # 72 GPUs of one domain; 24 heads and 36 layers allow 3, 6, 9 and more.
    model = dense.model_copy(update={"heads": 24, "kv_heads": 24, "layers": 36, "mlp": 9216})
    table = enumerate_layouts(make_space("gb200:18x4", model, global_batch=72)).table
    assert {1, 2, 3, 4, 6, 8, 12, 24} == set(table.size(Axis.TENSOR).tolist())
    assert {1, 2, 3, 4, 6, 9, 12, 18, 36} == set(table.size(Axis.PIPELINE).tolist())
