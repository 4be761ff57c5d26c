"""Models and jobs that the emitters are tested with."""

from __future__ import annotations

from typing import Any

from prompts_agent.emit.facts import JobFacts
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.model.spec import ModelSpec, MoeDims
from prompts_agent.workload.workload import Phase

# Small dims that every axis of size 2, 4 or 8 divides.
DENSE = ModelSpec(
    name="tiny",
    family="test",
    layers=8,
    embed=64,
    heads=8,
    kv_heads=4,
    head_dim=8,
    mlp=128,
    gated_mlp=True,
    vocab=256,
    tied_embeddings=False,
    source="made up",
)
MOE = DENSE.model_copy(
    update={"name": "tiny-moe", "moe": MoeDims(experts=8, experts_per_token=2, mlp=64)}
)


def job(
    *,
    phase: Phase = Phase.PRETRAIN,
    model: ModelSpec | None = DENSE,
    hardware: str | None = "v5e:2x4",
    torch_trace: bool = False,
) -> JobFacts:
    return JobFacts(
        phase=phase,
        sequence=4096,
        model_name=model.name if model else "unknown",
        model=model,
        topology=parse_topology(hardware) if hardware else None,
        torch_trace=torch_trace,
    )


def layout(knobs: dict[str, Any] | None = None, /, **axes: Any) -> Layout:
    """`layout({"microbatch": 2}, fsdp=8)`; an axis may be {"ici": 4, "dcn": 2}."""
    return Layout(mesh=Mesh.model_validate(axes), **(knobs or {}))
