"""Every emitter's whole output; `UPDATE_GOLDEN=1 pytest tests/emit` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from emit_build import DENSE, MOE

from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.registry import FRAMEWORKS, emit
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout, PipelineSchedule, Remat
from prompts_agent.layout.mesh import Mesh
from prompts_agent.workload.workload import Phase

GOLDEN = Path(__file__).resolve().parent / "golden"
DIVIDES = {"expert_divides": True}

# Framework, what is shown → hardware, phase, MoE, axes, knobs.
CASES: dict[tuple[str, str], tuple[str, Phase, bool, dict[str, Any], dict[str, Any]]] = {
    ("jax", "slices"): (
        "2*v5e:2x4",
        Phase.PRETRAIN,
        False,
        {"data": {"dcn": 2}, "fsdp": 4, "tensor": 2},
        {"remat": Remat.OFFLOAD, "gradient_accumulation": 2},
    ),
    ("jax", "serving"): ("v6e:2x4", Phase.SERVE, True, {"expert": 4, "tensor": 2}, {}),
    ("maxtext", "pipeline"): (
        "2*v5e:2x4",
        Phase.PRETRAIN,
        False,
        {"pipeline": {"dcn": 2}, "fsdp": 4, "tensor": 2},
        {"gradient_accumulation": 4, "remat": Remat.MINIMAL, "sequence_parallel": True},
    ),
    ("megatron", "experts"): (
        "h100:4x8",
        Phase.PRETRAIN,
        True,
        {"pipeline": 2, "data": 8, "tensor": 2, "expert": 8},
        DIVIDES
        | {
            "gradient_accumulation": 8,
            "sequence_parallel": True,
            "virtual_stages": 2,
            "schedule": PipelineSchedule.INTERLEAVED,
            "weights_over_context": False,
        },
    ),
    ("megatron", "fsdp"): ("h100:1x8", Phase.PRETRAIN, False, {"fsdp": 8}, {}),
    ("torchtitan", "experts"): (
        "h100:1x8",
        Phase.PRETRAIN,
        True,
        {"fsdp": 4, "tensor": 2, "expert": 8},
        DIVIDES | {"microbatch": 2, "sequence_parallel": True},
    ),
    ("torchtitan", "pipeline"): (
        "h100:1x8",
        Phase.PRETRAIN,
        False,
        {"pipeline": 4, "tensor": 2},
        {"gradient_accumulation": 8, "remat": Remat.NONE},
    ),
    ("vllm", "experts"): (
        "h100:1x8",
        Phase.SERVE,
        True,
        {"data": 4, "tensor": 2, "expert": 8},
        DIVIDES | {"kv_dtype": "fp8"},
    ),
    ("vllm-tpu", "attention_groups"): (
        "v6e:2x4",
        Phase.SERVE,
        False,
        {"tensor": 8},
        {"attention_data": 2, "batch_limit": 64},
    ),
    ("sglang", "experts"): (
        "h100:1x8",
        Phase.SERVE,
        True,
        {"tensor": 8, "expert": 8},
        DIVIDES | {"attention_data": 8, "batch_limit": 256},
    ),
}


@pytest.mark.parametrize(("framework", "what"), sorted(CASES))
def test_golden(framework: str, what: str) -> None:
    hardware, phase, moe, axes, knobs = CASES[framework, what]
    topology = parse_topology(hardware)
    degrees = all(isinstance(size, int) for size in axes.values())
    if degrees:
        from prompts_agent.layout.domains import domain_size, mesh_over_domains
        from prompts_agent.layout.mesh import Axis

        mesh = mesh_over_domains(
            {Axis(name): size for name, size in axes.items()},
            domain_size(topology),
            expert_divides=bool(knobs.get("expert_divides")),
        )
    else:
        mesh = Mesh.model_validate(axes)
    model = MOE if moe else DENSE
    facts = JobFacts(
        phase=phase,
        sequence=4096,
        global_batch=64,
        model_name=model.name,
        model=model,
        topology=topology,
    )
    config = emit(Layout(mesh=mesh, **knobs), facts, framework)
    text = config.text + f"\n--- check\n{config.check_command}\n--- notes\n"
    text += "".join(f"{note}\n" for note in config.notes)
    path = GOLDEN / f"{framework}.{what}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "look, then UPDATE_GOLDEN=1"


def test_every_framework_has_one() -> None:
    assert {framework for framework, _ in CASES} == set(FRAMEWORKS)


def test_the_example_of_the_documentation_works() -> None:
    page = Path(__file__).parents[2] / "docs" / "emitters.md"
    code = page.read_text(encoding="utf-8").split("```python\n", 1)[1].split("```", 1)[0]
    space: dict[str, Any] = {}
    exec(compile(code, "nanotron.py", "exec"), space)
    layout = Layout(mesh=Mesh.of(data=4, tensor=2), microbatch=2)
    text = space["write"](layout, JobFacts(phase=Phase.PRETRAIN, sequence=8)).text
    assert "  dp: 4\n" in text
    assert "  micro_batch_size: 2\n" in text
