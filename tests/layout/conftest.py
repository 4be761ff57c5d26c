"""Small models and spaces that the tests of this room share."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.space import Space
from prompts_agent.model.spec import ModelSpec, MoeDims


class MakeSpace(Protocol):
    def __call__(self, hardware: str, model: ModelSpec = ..., **settings: Any) -> Space: ...


DENSE = ModelSpec(
    name="dense",
    family="test",
    layers=32,
    embed=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    mlp=14336,
    gated_mlp=True,
    vocab=128256,
    tied_embeddings=False,
    source="the dims of Llama 3 8B",
)
MOE = DENSE.model_copy(
    update={"name": "moe", "moe": MoeDims(experts=8, experts_per_token=2, mlp=14336)}
)


@pytest.fixture
def dense() -> ModelSpec:
    return DENSE


@pytest.fixture
def moe() -> ModelSpec:
    return MOE


@pytest.fixture
def make_space() -> MakeSpace:
    def make(hardware: str, model: ModelSpec = DENSE, **settings: Any) -> Space:
        defaults = {"training": True, "global_batch": 256, "sequence": 8192}
        return Space(model=model, topology=parse_topology(hardware), **(defaults | settings))

    return make
