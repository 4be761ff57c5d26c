from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.layout.specs import (
    ACTIVATION_CLASSES,
    WEIGHT_CLASSES,
    mesh_axes,
    partition_specs,
    shard_shape,
)
from prompts_agent.model.spec import ModelSpec

from .conftest import MOE


def test_fsdp_and_tensor(dense: ModelSpec) -> None:
    specs = partition_specs(Layout(mesh=Mesh.of(data=2, fsdp=8, tensor=4)), dense)
    assert specs["attention.q"] == ("fsdp", "tensor", None)
    assert specs["attention.o"] == ("tensor", None, "fsdp")
    assert specs["mlp.in"] == ("fsdp", "tensor")
    assert specs["mlp.out"] == ("tensor", "fsdp")
    assert specs["embedding"] == ("tensor", "fsdp")
    assert specs["norm"] == (None,)
    assert specs["tokens"] == (("data", "fsdp"), None)
    assert specs["activations"] == (("data", "fsdp"), None, None)
    assert specs["activations.logits"] == (("data", "fsdp"), None, "tensor")
    assert not {"router", "experts.in"} & set(specs)


def test_sequence_parallel_and_context(dense: ModelSpec) -> None:
    mesh = Mesh.of(fsdp=4, context=2, tensor=2)
    specs = partition_specs(Layout(mesh=mesh, sequence_parallel=True), dense)
    assert specs["activations"] == ("fsdp", ("context", "tensor"), None)
    assert specs["activations.mlp"] == ("fsdp", "context", "tensor")
    assert specs["mlp.in"] == (("fsdp", "context"), "tensor")
    specs = partition_specs(Layout(mesh=mesh, weights_over_context=False), dense)
    assert specs["mlp.in"] == ("fsdp", "tensor")


def test_experts(moe: ModelSpec) -> None:
    layout = Layout(mesh=Mesh.of(fsdp=4, expert=8))
    specs = partition_specs(layout, moe)
    assert specs["experts.in"] == ("expert", "fsdp", None)
    # Dense weights see the expert ranks as more fsdp in training, and whole in serving.
    assert specs["attention.q"] == (("fsdp", "expert"), None, None)
    assert specs["tokens"] == (("fsdp", "expert"), None)
    serving = partition_specs(Layout(mesh=Mesh.of(expert=8)), moe, training=False)
    assert serving["attention.q"] == (None, None, None)


def test_heads_that_do_not_come_out_stay_whole(dense: ModelSpec) -> None:
    # 8 KV heads over tensor 16: repeated. GPT-2's odd vocabulary over 16: whole.
    model = dense.model_copy(update={"vocab": 50257})
    specs = partition_specs(Layout(mesh=Mesh.of(tensor=16)), model)
    assert specs["attention.k"] == (None, None, None)
    assert specs["kv_cache"] == (None, None, None, None)
    assert specs["embedding"] == (None, None)
    assert specs["attention.q"] == (None, "tensor", None)


def test_attention_data_is_an_axis_of_its_own(dense: ModelSpec) -> None:
    layout = Layout(mesh=Mesh.of(data=2, tensor=16), attention_data=4)
    assert mesh_axes(layout) == {"data": 2, "attention_data": 4, "tensor": 4}
    specs = partition_specs(layout, dense, training=False)
    assert specs["mlp.in"] == (None, ("attention_data", "tensor"))
    assert specs["kv_cache"] == (("data", "attention_data"), None, "tensor", None)
    # All of tensor in attention groups: the tensor axis itself disappears.
    whole = Layout(mesh=Mesh.of(tensor=8), attention_data=8)
    assert mesh_axes(whole) == {"attention_data": 8}
    assert partition_specs(whole, dense, training=False)["attention.q"] == (None, None, None)


def test_dividing_experts_have_no_spec(moe: ModelSpec) -> None:
    layout = Layout(mesh=Mesh.of(data=8, expert=8), expert_divides=True)
    with pytest.raises(LayoutError, match="Set expert_divides to false"):
        partition_specs(layout, moe)


def test_shard_shape() -> None:
    sizes = {"data": 2, "fsdp": 16, "tensor": 4}
    assert shard_shape((4096, 32, 128), ("fsdp", "tensor", None), sizes) == (256, 8, 128)
    assert shard_shape((256, 8192), (("data", "fsdp"),), sizes) == (8, 8192)
    assert shard_shape((256,), ("context",), sizes) == (256,)


@pytest.mark.parametrize(
    ("shape", "spec", "message"),
    [
        ((30, 8), ("fsdp", None), r"dim 0 of shape \(30, 8\) over fsdp = 16.*30 % 16 = 14"),
        ((32,), ("fsdp", None), "at most one entry a dim"),
        ((32, 32), ("fsdp", "fsdp"), "names each axis once"),
    ],
)
def test_impossible_shards(
    shape: tuple[int, ...], spec: tuple[str | None, ...], message: str
) -> None:
    with pytest.raises(LayoutError, match=message):
        shard_shape(shape, spec, {"fsdp": 16})


@given(*[st.sampled_from([1, 2, 4])] * 5, st.booleans(), st.booleans(), st.booleans())
def test_shards_multiply_back(
    data: int,
    fsdp: int,
    expert: int,
    context: int,
    tensor: int,
    parallel: bool,
    over_context: bool,
    training: bool,
) -> None:
    layout = Layout(
        mesh=Mesh.of(data=data, fsdp=fsdp, expert=expert, context=context, tensor=tensor),
        sequence_parallel=parallel,
        weights_over_context=over_context,
    )
    dims = {
        "embed": 4096,
        "expert_embed": 4096,
        "activation_embed": 4096,
        "norm": 4096,
        "heads": 32,
        "activation_heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "mlp": 14336,
        "vocab": 128256,
        "router": 8,
        "experts": 8,
        "batch": 64,
        "attention_batch": 64,
        "sequence": 8192,
        "residual_sequence": 8192,
    }
    sizes = mesh_axes(layout)
    specs = partition_specs(layout, MOE, training=training)
    classes = WEIGHT_CLASSES | ACTIVATION_CLASSES
    assert set(specs) == set(classes)
    for name, spec in specs.items():
        shape = tuple(dims[dim] for dim in classes[name])
        used = [a for e in spec if e for a in ((e,) if isinstance(e, str) else e)]
        shards = math.prod(sizes[axis] for axis in used)
        assert math.prod(shard_shape(shape, spec, sizes)) * shards == math.prod(shape)
