"""The reference program runs for real on eight virtual CPU devices.

Whatever the layout, a training step must give the loss that one device gives, and so must the step
after it, which hangs on the gradients; a decode step must give the same tokens.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from compile_build import layout, tiny

from prompts_agent.layout.layout import Layout
from prompts_agent.workload.workload import Workload

HERE = Path(__file__).resolve().parent
ONE = layout(microbatch=8)
MOE = {"moe": {"experts": 4, "experts_per_token": 2, "mlp": 64}}
LATENT = {
    "kv_heads": 8,
    "mla": {
        "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
        "v_head_dim": 16,
    },
}  # fmt: skip
PLAIN = {
    "gated_mlp": False, "tied_embeddings": True, "parallel_block": True, "norm": "layernorm",
    "qkv_bias": True, "mlp_bias": True, "out_bias": True, "learned_positions": 64,
}  # fmt: skip
MIXED = {
    "layers": 3, "sliding_window": 8, "global_every": 2, "layer_norms": 4,
    "moe": {
        "experts": 4, "experts_per_token": 2, "mlp": 64, "dense_layers": 1, "shared_experts": 1,
        "shared_mlp": 64,
    },
}  # fmt: skip
UNEVEN = {"embed": 60, "mlp": 100}
"""Of 8 ranks: heads and the vocab can be cut, neither dim of the mlp's weights can."""

ENCODER = {
    "kv_heads": 8, "encoder_layers": 2, "layer_norms": 3, "position_buckets": 8, "gated_mlp": False,
    "tied_embeddings": True,
}  # fmt: skip

TRAINING: dict[str, list[Layout]] = {
    "dense": [
        layout(fsdp=8),
        layout(fsdp=2, tensor=4, microbatch=4),
        layout(fsdp=2, tensor=4, microbatch=4, sequence_parallel=True, remat="minimal"),
        layout(context=2, data=2, tensor=2, microbatch=4),
        layout(data=8, zero_stage=0, remat="none"),
        layout(data=4, fsdp=2, zero_stage=1),
        layout(fsdp=4, gradient_accumulation=2),
        layout(pipeline=2, fsdp=2, tensor=2, gradient_accumulation=4),
        layout(pipeline=2, data=4, gradient_accumulation=2, remat="full"),
    ],
    "moe": [
        layout(expert=4, fsdp=2),
        layout(fsdp=2, expert=2, tensor=2, microbatch=2),
    ],
    "dropless": [
        layout(data=8, expert=4, expert_divides=True, zero_stage=1),
        layout(data=4, tensor=2, expert=4, expert_divides=True, microbatch=2, remat="none"),
        layout(data=2, tensor=4, expert=2, expert_divides=True, microbatch=4, remat="minimal"),
        layout(
            fsdp=4, tensor=2, expert=4, expert_divides=True, microbatch=2, sequence_parallel=True
        ),
        layout(data=2, context=2, tensor=2, expert=4, expert_divides=True, microbatch=4),
        layout(pipeline=2, data=4, expert=2, expert_divides=True, gradient_accumulation=2),
        layout(fsdp=2, expert=2, tensor=2, microbatch=2, sequence_parallel=True),
        layout(fsdp=8, remat="none"),
    ],
    "encoder": [
        layout(fsdp=8),
        layout(fsdp=2, tensor=4, microbatch=4, sequence_parallel=True, remat="minimal"),
        layout(context=2, data=2, tensor=2, microbatch=4),
    ],
    "latent": [layout(fsdp=2, tensor=4, microbatch=4)],
    "plain": [layout(fsdp=2, tensor=4, microbatch=4)],
    "mixed": [layout(fsdp=4, context=2, microbatch=2)],
    "uneven": [layout(data=8, zero_stage=1), layout(data=2, fsdp=2, gradient_accumulation=2)],
}
SERVING = [
    layout(tensor=8, kv_dtype="fp32"),
    layout(tensor=8, attention_data=4, kv_dtype="fp32"),
    layout(data=2, context=2, tensor=2, kv_dtype="fp32"),
]
EXPERT_SERVING = [
    layout(tensor=8, expert=2, expert_divides=True, kv_dtype="fp32"),
    layout(data=2, tensor=4, expert=4, expert_divides=True, attention_data=2, kv_dtype="fp32"),
    layout(data=4, tensor=2, expert=4, expert_divides=True, kv_dtype="fp32"),
    layout(expert=4, tensor=2, kv_dtype="fp32"),
]
KERNELS = ("splash", "blocked")
MODELS: dict[str, dict[str, Any]] = {
    "dense": {}, "moe": MOE, "dropless": MOE, "latent": LATENT, "plain": PLAIN, "mixed": MIXED,
    "uneven": UNEVEN, "encoder": ENCODER,
}  # fmt: skip


@cache
def _run(*cases: str) -> list[dict[str, Any]]:
    # The code is run once, so making it fast costs more than it saves.
    flags = (
        "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
        "--xla_llvm_disable_expensive_passes=true"
    )
    done = subprocess.run(
        [sys.executable, str(HERE / "run_reference.py")],
        input=f"[{','.join(cases)}]",
        text=True,
        capture_output=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _case(workload: Workload, cut: Layout, **more: object) -> str:
    parts = {"workload": workload.model_dump(mode="json"), "layout": cut.model_dump(mode="json")}
    return json.dumps(parts | more)


@pytest.mark.parametrize("model", TRAINING)
def test_every_layout_gives_the_loss_of_one_device(model: str) -> None:
    cuts = [ONE, *TRAINING[model]]
    framework = "torchtitan" if model == "dropless" else None
    job = tiny(model=MODELS[model], framework=framework)
    found = _run(*(_case(job, cut) for cut in cuts))
    for cut, one in zip(cuts, found, strict=True):
        assert one["result"] == pytest.approx(found[0]["result"], rel=1e-5), cut
        assert one["second"] == pytest.approx(found[0]["second"], rel=1e-5), cut
    assert found[0]["second"] < found[0]["result"], "the optimizer's step lowers the loss"


def test_experts_are_what_numpy_makes_of_them() -> None:
    # By the ragged product that TPUs get and by the batched one of GPUs, tokens sent over all axes.
    job = tiny(model={"moe": {"experts": 8, "experts_per_token": 3, "mlp": 32}})
    cuts = [
        layout(tensor=4, expert=4, data=2, expert_divides=True),
        layout(fsdp=4, tensor=2, expert=8, expert_divides=True, sequence_parallel=True),
    ]
    found = _run(*(_case(job, cut, kernel=kernel) for cut in cuts for kernel in KERNELS))
    for one in found:
        assert one["error"] < 1e-5 * max(1.0, one["size"])


def test_the_one_hot_lookup_is_the_gather() -> None:
    cases = (_case(tiny(), ONE), _case(tiny(), layout(fsdp=8), one_hot=True))
    one, hot = _run(*cases)
    assert hot["result"] == pytest.approx(one["result"], rel=1e-5)


def test_axes_move_what_they_should() -> None:
    cuts = (ONE, layout(fsdp=8), layout(tensor=8, microbatch=8), layout(expert=4, fsdp=2))
    cases = [_case(tiny(model=MOE if "expert 4" in str(cut) else {}), cut) for cut in cuts]
    one, fsdp, tensor, expert = (set(case["collectives"]) for case in _run(*cases))
    assert not one - {"all-reduce"}, "only the loss of a group of one"
    assert "all-gather" in fsdp
    assert tensor & {"all-reduce", "reduce-scatter"}
    assert "all-gather" not in tensor, "weights stay where they are"
    assert "all-to-all" in expert, "tokens travel to their experts"


@pytest.mark.parametrize("model", ["dense", "dropless", "encoder", "latent", "mixed"])
def test_every_layout_decodes_the_tokens_of_one_device(model: str) -> None:
    workload = tiny("decode", model=MODELS[model])
    # Every layout for the dense model; for the others the one that cuts most ways.
    several = {"dense": SERVING, "dropless": EXPERT_SERVING}
    cuts = [layout(kv_dtype="fp32"), *several.get(model, SERVING[-1:])]
    found = _run(*(_case(workload, cut) for cut in cuts))
    assert len(found[0]["result"]) == 8
    for cut, one in zip(cuts, found, strict=True):
        assert one["result"] == found[0]["result"], cut


@pytest.mark.parametrize("model", ["dense", "encoder", "latent", "mixed"])
def test_decode_goes_on_where_prefill_ended(model: str) -> None:
    # One token of decode after a prompt of 16 is what a prompt of 17 gives. In `mixed`, experts
    # have room for every token here, so that nothing is dropped on one side only.
    dims = dict(MODELS[model])
    if "moe" in dims:
        dims["moe"] = {**dims["moe"], "experts": 2}
    workload = tiny("prefill", model=dims, global_batch=1)
    found = _run(_case(workload, layout(kv_dtype="fp32"), prompt=16))
    assert found[0]["result"] == found[0]["whole"]


def test_arguments_are_of_the_classes_that_are_reported() -> None:
    training, serving = _run(_case(tiny(), ONE), _case(tiny("decode"), layout(kv_dtype="fp32")))
    assert training["classes"] == ["inputs", "optimizer", "parameters"]
    assert serving["classes"] == ["inputs", "kv_cache", "parameters"]
