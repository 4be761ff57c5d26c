from __future__ import annotations

from typing import Any

import pytest

from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.axis_names import axis_named
from prompts_agent.workload.infer import InferredWorkload, infer_workload
from prompts_agent.workload.program import AxisInUse, ProgramShapes, TensorShape
from prompts_agent.workload.workload import Phase

LLAMA = find_model("llama3-8b")


def weight(name: str, shape: tuple[int, ...], tiles: tuple[int, ...]) -> TensorShape:
    local = tuple(n // t for n, t in zip(shape, tiles, strict=True))
    return TensorShape(name=name, dtype="f32", local_shape=local, global_shape=shape, tiles=tiles)


def tokens(*shape: int) -> TensorShape:
    return TensorShape(name="tokens", dtype="s32", local_shape=shape, global_shape=shape)


def mesh(**sizes: int) -> tuple[AxisInUse, ...]:
    return tuple(AxisInUse(name=name, size=size) for name, size in sizes.items())


def infer(*, model: Any = LLAMA, hardware: str | None = None, **fields: Any) -> InferredWorkload:
    defaults: dict[str, Any] = {
        "name": "jit_train_step",
        "parameters": (weight("params/mlp/wi", (4096, 14336), (1, 4)),),
        "inputs": (tokens(16, 4096),),
        "mesh": mesh(data=2, model=4),
        "has_backward": True,
        "device_kind": "v6e",
        "devices": 8,
    }
    topology = parse_topology(hardware) if hardware else None
    return infer_workload(ProgramShapes(**(defaults | fields)), topology=topology, model=model)


def degrees(found: InferredWorkload) -> dict[Axis, int]:
    assert found.workload is not None
    assert found.workload.baseline is not None
    return found.workload.baseline.mesh.used()


def test_a_training_step() -> None:
    found = infer()
    assert found.missing == ()
    workload = found.workload
    assert workload is not None
    assert (workload.phase, workload.global_batch, workload.sequence) == (Phase.PRETRAIN, 16, 4096)
    assert str(workload.topology) == "v6e:2x4"
    # Weights in 4 shards are explained by model alone: they are whole along data.
    assert degrees(found) == {Axis.DATA: 2, Axis.TENSOR: 4}
    assert workload.baseline is not None
    assert workload.baseline.microbatch == 8
    said = " ".join(workload.assumptions)
    for part in (
        "v6e:2x4",
        "model is taken as tensor",
        "pretraining",
        "one optimizer step",
        "Remat",
    ):
        assert part in said


def test_data_that_cuts_weights_is_fsdp() -> None:
    found = infer(parameters=(weight("params/mlp/wi", (4096, 14336), (2, 4)),))
    assert degrees(found) == {Axis.FSDP: 2, Axis.TENSOR: 4}
    assert found.workload is not None
    assert "data is taken as fsdp, because weights are cut over it" in str(
        found.workload.assumptions
    )


def test_optimizer_state_that_is_cut_further_does_not_make_fsdp() -> None:
    found = infer(
        parameters=(
            weight("params/mlp/wi", (4096, 14336), (1, 4)),
            weight("opt_state/mu/mlp/wi", (4096, 14336), (2, 4)),
            weight("opt_state/nu/mlp/wi", (4096, 14336), (2, 4)),
        )
    )
    assert degrees(found) == {Axis.DATA: 2, Axis.TENSOR: 4}


def test_replicas_are_data_whatever_the_weights_say() -> None:
    found = infer(parameters=(weight("w", (4096, 14336), (1, 4)),), mesh=mesh(replica=2, fsdp=4))
    assert degrees(found) == {Axis.DATA: 2, Axis.FSDP: 4}


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"mesh": mesh(x=2, y=4)}, "the mesh axes x, y cut"),
        ({"mesh": ()}, "the trace does not name"),
        (
            {"parameters": (TensorShape(name="w", dtype="f32", local_shape=(4096, 512)),)},
            "whether weights are cut over the axis data",
        ),
        ({"mesh": mesh(model=4)}, "= 4 devices and v6e:2x4 has 8"),
    ],
)
def test_a_baseline_that_would_be_a_guess_is_left_out(fields: dict[str, Any], part: str) -> None:
    found = infer(**fields)
    assert found.workload is not None
    assert found.workload.baseline is None
    assert part in found.missing[0]


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"model": None}, "the model:"),
        ({"device_kind": None}, "the hardware: the trace does not name an accelerator"),
        ({"devices": 12}, "the hardware: 12 devices of v6e"),
        ({"inputs": ()}, "the global batch"),
        ({"has_backward": None}, "the phase"),
    ],
)
def test_a_workload_that_would_be_a_guess_is_none(fields: dict[str, Any], part: str) -> None:
    found = infer(**fields)
    assert found.workload is None
    assert any(part in sentence for sentence in found.missing)


def test_what_the_caller_knows_wins() -> None:
    found = infer(hardware="v5e:2x4", device_kind=None, has_backward=None)
    assert found.workload is None
    shapes = ProgramShapes(name="step", mesh=mesh(tensor=8))
    known = infer_workload(
        shapes,
        topology=parse_topology("v5e:2x4"),
        model=LLAMA,
        phase=Phase.SERVE,
        global_batch=64,
        sequence=2048,
    )
    assert known.missing == ()
    assert degrees(known) == {Axis.TENSOR: 8}


def test_prefill_and_decode() -> None:
    prefill = infer(has_backward=False, mesh=mesh(tp=8), inputs=(tokens(4, 1024),))
    assert prefill.workload is not None
    assert (prefill.workload.phase, prefill.workload.sequence) == (Phase.PREFILL, 1024)
    assert prefill.workload.precision.weights == "fp32"
    # layers × batch × tokens × kv_heads × head_dim of Llama 3 8B.
    cache = TensorShape(
        name="kv_cache/k", dtype="bf16", local_shape=(32, 16, 2048, 1, 128), tiles=(1, 1, 1, 8, 1)
    )
    decode = infer(
        has_backward=False, mesh=mesh(tp=8), inputs=(tokens(16, 1),), parameters=(cache,)
    )
    assert decode.workload is not None
    assert (decode.workload.phase, decode.workload.global_batch) == (Phase.DECODE, 16)
    assert decode.workload.sequence == 2048
    without = infer(has_backward=False, mesh=mesh(tp=8), inputs=(tokens(16),))
    assert without.workload is None
    assert "the sequence length" in without.missing[0]


def test_a_model_from_its_weights() -> None:
    shapes = {
        "token_embedder/embedding": (32000, 512),
        **{
            f"layers_{i}/{n}": s
            for i in range(2)
            for n, s in {
                "attention/query/kernel": (512, 8, 64),
                "attention/key/kernel": (512, 4, 64),
                "attention/value/kernel": (512, 4, 64),
                "attention/out/kernel": (8, 64, 512),
                "mlp/wi_0/kernel": (512, 1536),
                "mlp/wi_1/kernel": (512, 1536),
                "mlp/wo/kernel": (1536, 512),
            }.items()
        },
    }
    parameters = tuple(weight(n, s, (1,) * len(s)) for n, s in shapes.items())
    found = infer(model=None, parameters=parameters, mesh=mesh(data=8))
    assert found.workload is not None, found.missing
    assert (found.workload.model.layers, found.workload.model.embed) == (2, 512)
    assert any("inferred from the weights" in text for text in found.workload.assumptions)
    assert degrees(found) == {Axis.DATA: 8}


def test_a_program_without_a_transformer_says_so() -> None:
    # The host-offload example: a few copies of one matrix, no tokens.
    parameters = (weight("x", (8192, 8192), (1, 1)), weight("y", (8192, 8192), (1, 1)))
    found = infer(model=None, parameters=parameters, inputs=(), mesh=(), devices=1)
    assert found.workload is None
    assert any(text.startswith("the model:") for text in found.missing)


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("model", Axis.TENSOR),
        ("mp", Axis.TENSOR),
        ("TP", Axis.TENSOR),
        ("tensor", Axis.TENSOR),
        ("data", Axis.DATA),
        ("dp", Axis.DATA),
        ("replica", Axis.DATA),
        ("fsdp", Axis.FSDP),
        ("dp_shard", Axis.FSDP),
        ("seq", Axis.CONTEXT),
        ("sp", Axis.CONTEXT),
        ("cp", Axis.CONTEXT),
        ("stage", Axis.PIPELINE),
        ("pp", Axis.PIPELINE),
        ("expert", Axis.EXPERT),
        ("ep", Axis.EXPERT),
        ("x", None),
    ],
)
def test_axis_names(name: str, axis: Axis | None) -> None:
    assert axis_named(name) is axis


def test_microbatches_of_a_step_are_parts_of_its_batch() -> None:
    # [4, 8, 4096]: four passes of eight sequences.
    workload = infer(inputs=(tokens(4, 8, 4096),)).workload
    assert workload is not None
    assert (workload.global_batch, workload.sequence) == (32, 4096)
    # Beside batch × sequence, three dims are something else: [3, 16, 4096] are position ids.
    workload = infer(inputs=(tokens(16, 4096), tokens(3, 16, 4096))).workload
    assert workload is not None
    assert (workload.global_batch, workload.sequence) == (16, 4096)


def test_a_cache_that_holds_each_kv_head_twice_still_tells_its_length() -> None:
    # llama3-8b has 8 KV heads of 128 in 32 layers; over 16 tensor ranks the cache has 16.
    cache = weight("cache/k", (32, 64, 16, 4096, 128), (1, 1, 8, 1, 1))
    workload = infer(
        parameters=(weight("params/mlp/wi", (4096, 14336), (1, 4)), cache),
        inputs=(tokens(64),),
        has_backward=False,
    ).workload
    assert workload is not None
    assert (workload.phase, workload.global_batch, workload.sequence) == (Phase.DECODE, 64, 4096)
