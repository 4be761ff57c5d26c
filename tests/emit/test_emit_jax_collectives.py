"""The emitted specs, applied to a small model on eight CPU devices: XLA's collectives are those
that the layout stands for, by kind and by axis, and the loss is the same under every layout.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from emit_build import DENSE, MOE, job, layout

from prompts_agent.emit.registry import emit
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.trace.hlo.mesh import Mesh
from prompts_agent.trace.hlo.shape import Shape
from prompts_agent.trace.hlo.text import read_hlo_text

SP = {"sequence_parallel": True}
LAYOUTS: dict[str, Layout] = {
    "one": layout(),
    "data": layout(data=8),
    "fsdp": layout(fsdp=8),
    "tensor": layout(tensor=4, data=2),
    "tensor_sequence": layout(SP, tensor=4, data=2),
    "hybrid": layout(data=2, fsdp=4),
    "fsdp_tensor": layout(fsdp=4, tensor=2),
    "context": layout({"remat": Remat.NONE}, data=2, context=4),
    "moe": layout(),
    "expert": layout(data=2, expert=4),
}
REDUCE = {"all-reduce", "reduce-scatter"}
KINDS = (*sorted(REDUCE), "all-gather", "all-to-all", "collective-permute")
Found = dict[str, set[str]]


@pytest.fixture(scope="module")
def programs() -> dict[str, dict[str, Any]]:
    """Every layout's compiled step; one process, because a start of JAX costs more than they do."""
    wanted = []
    for name, of in LAYOUTS.items():
        moe = name in ("expert", "moe")
        text = emit(of, job(model=MOE if moe else DENSE), "jax").text
        wanted.append({"text": text, "moe": moe})
    env = os.environ | {
        "JAX_PLATFORMS": "cpu",
        # Machine code is none of this test's business.
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
        "--xla_llvm_disable_expensive_passes=true",
    }
    script = Path(__file__).with_name("small_model.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps(wanted),
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(LAYOUTS, json.loads(done.stdout), strict=True))


def parts_of(shape: Shape) -> tuple[Shape, ...]:
    return shape.parts or (shape,)


def collectives(program: dict[str, Any]) -> Found:
    """Axis (or axes, "+" between) → kinds of what moves weights, activations or gradients over it.

    Scalars (the loss) and integers (the tokens) are left out.
    """
    axes = tuple((name, size) for name, size in program["axes"])
    mesh = Mesh(axes, named=True, devices=tuple(program["devices"]))
    found: Found = {}
    for instruction in read_hlo_text(program["hlo"]).instructions.values():
        kind = instruction.opcode.removesuffix("-start")
        if kind not in KINDS or instruction.groups is None:
            continue
        axis = mesh.axis_of(instruction.groups)
        floats = any(part.dtype.startswith("f") for part in parts_of(instruction.shape))
        if axis is not None and floats and instruction.shape.elements > 8:
            found.setdefault(axis, set()).add(kind)
    return found


def reduces(found: Found, axis: str) -> bool:
    """Whether sums go over the axis, alone or with another."""
    return any(axis in axes.split("+") and kinds & REDUCE for axes, kinds in found.items())


def gathers(found: Found, axis: str) -> bool:
    return any(axis in axes.split("+") and "all-gather" in kinds for axes, kinds in found.items())


def test_the_loss_does_not_depend_on_the_layout(programs: dict[str, dict[str, Any]]) -> None:
    for name, program in programs.items():
        alone = programs["moe" if name == "expert" else "one"]
        if name != "moe":
            assert program["loss"] == pytest.approx(alone["loss"], rel=1e-4), name
            assert program["norm"] == pytest.approx(alone["norm"], rel=1e-3), name


def test_one_device_talks_to_nobody(programs: dict[str, dict[str, Any]]) -> None:
    assert collectives(programs["one"]) == {}


def test_data_sums_gradients_and_gathers_nothing(programs: dict[str, dict[str, Any]]) -> None:
    assert collectives(programs["data"]) == {"data": {"all-reduce"}}


def test_tensor_sums_activations_and_gathers_no_weights(
    programs: dict[str, dict[str, Any]],
) -> None:
    assert collectives(programs["tensor"]) == {"tensor": {"all-reduce"}, "data": {"all-reduce"}}


def test_sequence_parallel_gathers_what_tensor_cut(programs: dict[str, dict[str, Any]]) -> None:
    found = collectives(programs["tensor_sequence"])
    assert gathers(found, "tensor")
    assert reduces(found, "tensor")
    assert found["data"] == {"all-reduce"}


def test_fsdp_gathers_weights_and_sums_gradients(programs: dict[str, dict[str, Any]]) -> None:
    # XLA for CPU writes a reduce-scatter as an all-reduce and a slice.
    found = collectives(programs["fsdp"])
    assert found == {"fsdp": {"all-gather", "all-reduce"}}


def test_hsdp_sums_gradients_over_data_too(programs: dict[str, dict[str, Any]]) -> None:
    found = collectives(programs["hybrid"])
    assert gathers(found, "fsdp")
    assert not gathers(found, "data")
    assert reduces(found, "fsdp")
    assert reduces(found, "data")


def test_fsdp_with_tensor_keeps_each_to_its_axis(programs: dict[str, dict[str, Any]]) -> None:
    found = collectives(programs["fsdp_tensor"])
    assert "all-gather" in found["fsdp"]
    assert "all-reduce" in found["tensor"]


def test_context_moves_keys_and_values(programs: dict[str, dict[str, Any]]) -> None:
    found = collectives(programs["context"])
    assert gathers(found, "context")
    assert reduces(found, "data")


def test_tokens_travel_to_their_experts(programs: dict[str, dict[str, Any]]) -> None:
    found = collectives(programs["expert"])
    assert "all-to-all" in found["expert"]
    assert reduces(found, "data")
