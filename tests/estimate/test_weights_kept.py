"""FSDP under a pipeline: weights are gathered once a step and stay whole until its end."""

from __future__ import annotations

import pytest
from estimate_build import job

from prompts_agent.estimate.estimator import estimate
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Workload


@pytest.fixture
def pytorch() -> Workload:
    return job(topology="h100:8x8").model_copy(update={"framework": Framework.PYTORCH})


def layout(pipeline: int, accumulation: int) -> Layout:
    mesh = {"pipeline": {"dcn": pipeline}, "fsdp": {"ici": 8, "dcn": 8 // pipeline}}
    return Layout.model_validate(
        {"mesh": mesh, "microbatch": 1, "gradient_accumulation": accumulation}
    )


def busy_s(workload: Workload, one: Layout) -> float:
    found = estimate(LayoutTable.of([one]), workload)
    return float(found.terms["time.fsdp_exposed_s"][0])


def test_traffic_does_not_grow_with_the_microbatches(pytorch: Workload) -> None:
    """A gather and a reduce-scatter a step: 16 microbatches cost as much as 8, where without a
    pipeline they cost twice as much.
    """
    few, many = busy_s(pytorch, layout(2, 8)), busy_s(pytorch, layout(2, 16))
    assert many == pytest.approx(few, rel=0.01)
    alone = busy_s(pytorch, layout(1, 16)) / busy_s(pytorch, layout(1, 8))
    assert alone == pytest.approx(2.0, rel=0.05)


def test_whole_weights_and_gradients_are_held(pytorch: Workload) -> None:
    """Two stages of 32 ranks each: fp32 gradients of half of 6.74e9 parameters, whole: 13.5 GB."""
    found = estimate(LayoutTable.of([layout(2, 8)]), pytorch)
    cut = float(found.terms["memory.optimizer_bytes"][0]) / 8.0  # fp32 moments, 8 bytes each
    assert float(found.terms["memory.gradients_bytes"][0]) == pytest.approx(
        4.0 * 32 * cut, rel=0.02
    )


def test_a_compiler_gathers_in_every_turn_of_its_loop() -> None:
    jax = job(topology="h100:8x8").model_copy(update={"framework": Framework.MAXTEXT})
    assert busy_s(jax, layout(2, 16)) > 1.5 * busy_s(jax, layout(2, 8))
