"""The JAX text runs: on eight virtual CPU devices the mesh and the shards are as stated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from emit_build import MOE, job, layout

from prompts_agent.emit.registry import emit
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Remat
from prompts_agent.workload.workload import Phase

# Runs the emitted text and prints the mesh and, for a weight of each class, one shard's shape.
PROBE = """
import json, sys
import jax
shapes = json.loads(sys.argv[1])
space = {}
exec(compile(sys.stdin.read(), "layout.py", "exec"), space)
mesh = space["mesh"]
print(json.dumps({
    "axes": list(mesh.axis_names),
    "shape": list(mesh.devices.shape),
    "distinct": len({d.id for d in mesh.devices.flat}),
    "types": [str(t).rsplit(".", 1)[-1] for t in mesh.axis_types],
    "policy": space["REMAT_POLICY"] is not None if "REMAT_POLICY" in space else None,
    "shards": {n: space["shardings"][n].shard_shape(tuple(s)) for n, s in shapes.items()},
}))
"""


def run(text: str, shapes: dict[str, tuple[int, ...]], prelude: str = "") -> Any:
    env = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(shapes)],
        input=prelude + text,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WEIGHTS = {
    "embedding": (256, 64),
    "attention.q": (64, 8, 8),
    "attention.k": (64, 4, 8),
    "attention.o": (8, 8, 64),
    "mlp.in": (64, 128),
    "mlp.out": (128, 64),
    "logits": (64, 256),
}


def test_fsdp_and_tensor_shards() -> None:
    config = emit(layout(fsdp=4, tensor=2), job(), "jax")
    found = run(config.text, WEIGHTS)
    assert found["axes"] == ["fsdp", "tensor"]
    assert found["shape"] == [4, 2]
    assert found["distinct"] == 8
    assert found["types"] == ["Auto", "Auto"]
    assert found["policy"] is True
    # embed 64 ÷ fsdp 4 = 16; vocab 256, heads 8, kv_heads 4 and mlp 128 ÷ tensor 2.
    assert found["shards"] == {
        "embedding": [128, 16],
        "attention.q": [16, 4, 8],
        "attention.k": [16, 2, 8],
        "attention.o": [4, 8, 16],
        "mlp.in": [16, 64],
        "mlp.out": [64, 16],
        "logits": [16, 128],
    }


def test_experts_and_context() -> None:
    config = emit(layout(expert=4, context=2), job(model=MOE), "jax")
    shapes = {"experts.in": (8, 64, 64), "mlp.in": (64, 128), "tokens": (8, 4096)}
    found = run(config.text, shapes)
    assert found["axes"] == ["expert", "context"]
    # 8 experts ÷ 4; their embed over context alone, 64 ÷ 2; dense embed over both, 64 ÷ 8.
    assert found["shards"] == {
        "experts.in": [2, 32, 64],
        "mlp.in": [8, 128],
        "tokens": [2, 2048],
    }


def test_one_device() -> None:
    config = emit(layout(), job(), "jax")
    found = run(config.text, {"mlp.in": (64, 128)})
    assert found["shape"] == [1]
    assert found["shards"] == {"mlp.in": [64, 128]}


def test_attention_data_is_an_axis_of_its_own() -> None:
    serving = layout({"attention_data": 2, "batch_limit": 64}, tensor=8)
    config = emit(serving, job(phase=Phase.DECODE), "jax")
    shapes = {"attention.q": (64, 8, 8), "mlp.in": (64, 128), "kv_cache": (8, 4096, 4, 8)}
    found = run(config.text, shapes)
    assert found["axes"] == ["attention_data", "tensor"]
    assert found["shape"] == [2, 4]
    # heads ÷ 4, mlp ÷ 8, the cache: requests ÷ 2 and KV heads ÷ 4.
    assert found["shards"] == {
        "attention.q": [64, 2, 8],
        "mlp.in": [64, 16],
        "kv_cache": [4, 4096, 1, 8],
    }
    assert "BATCH_LIMIT = 64" in config.text


# CPU devices carry no slice_index: devices of two slices are stood in for by their first half
# and their second, which is what create_hybrid_device_mesh makes of real ones.
TWO_SLICES = """
import numpy as np
from jax.experimental import mesh_utils
def hybrid(mesh_shape, dcn_mesh_shape, **options):
    assert options == {}, options
    halves = np.array(jax.devices()).reshape(2, *mesh_shape)
    axis = list(dcn_mesh_shape).index(2)
    return np.concatenate([halves[0], halves[1]], axis=axis)
import jax
mesh_utils.create_hybrid_device_mesh = hybrid
"""


def test_two_slices_use_a_hybrid_mesh() -> None:
    two = layout(data={"dcn": 2}, fsdp=2, tensor=2)
    config = emit(two, job(hardware="2*v5e:2x2"), "jax")
    assert "mesh_shape=(1, 2, 2)" in config.text
    assert "dcn_mesh_shape=(2, 1, 1)" in config.text
    assert config.check_command is None
    found = run(config.text, {"mlp.in": (64, 128)}, TWO_SLICES)
    assert found["shape"] == [2, 2, 2]
    assert found["types"] == ["Auto"] * 3
    assert found["shards"] == {"mlp.in": [32, 64]}


def test_an_axis_inside_and_across_slices() -> None:
    config = emit(layout(fsdp={"ici": 4, "dcn": 2}), job(hardware="2*v5e:2x2"), "jax")
    assert "mesh_shape=(4,)" in config.text
    assert "dcn_mesh_shape=(2,)" in config.text
    assert run(config.text, {"mlp.in": (64, 128)}, TWO_SLICES)["shape"] == [8]


def test_gpu_hosts_are_granules() -> None:
    config = emit(layout(data={"dcn": 2}, fsdp=8), job(hardware="h100:2x8"), "jax")
    assert "process_is_granule=True" in config.text


def test_unknown_model_keeps_what_may_not_divide_whole() -> None:
    config = emit(layout(fsdp=4, tensor=2), job(model=None), "jax")
    found = run(config.text, {"embedding": (256, 64), "attention.k": (64, 4, 8)})
    assert found["shards"] == {"embedding": [256, 16], "attention.k": [16, 4, 8]}
    assert any("not known" in note for note in config.notes)


@pytest.mark.parametrize("remat", list(Remat))
def test_remat_policies_exist(remat: Remat) -> None:
    import jax

    from prompts_agent.emit.frameworks.jax import REMAT

    assert hasattr(jax.checkpoint_policies, REMAT[remat].partition("(")[0])


def test_global_batch_is_spelled() -> None:
    knobs = {"microbatch": 2, "gradient_accumulation": 4}
    text = emit(layout(knobs, fsdp=4, tensor=2), job(), "jax").text
    # 2 × 4 × 4 batch shards
    assert "GLOBAL_BATCH = 32" in text
    assert "GRADIENT_ACCUMULATION = 4  # passes of 8 sequences" in text


def test_divided_expert_axis_is_refused() -> None:
    divided = layout({"expert_divides": True}, tensor=8, expert=8)
    with pytest.raises(LayoutError, match="emit for Megatron"):
        emit(divided, job(model=MOE), "jax")


def test_pipeline_says_that_stages_are_the_users() -> None:
    notes = emit(layout(pipeline=2, fsdp=4), job(), "jax").notes
    assert any("pipeline schedule" in note for note in notes)
