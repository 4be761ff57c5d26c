from __future__ import annotations

import numpy as np
import pytest
from estimate_build import at, job, layout
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.estimate.calibration import Constant, load_calibration
from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.memory import memory_terms
from prompts_agent.estimate.step_time import exposed_s, step_time
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Constraints


def times(degrees: dict[str, int], **knobs: object) -> dict[str, float]:
    setting_at = at(job(batch=64), degrees, **knobs)
    return {k: float(v[0]) for k, v in step_time(setting_at, memory_terms(setting_at)).items()}


@pytest.mark.parametrize(("under", "left"), [(6.0, 4.0), (20.0, 1.0), (0.0, 10.0)])
def test_compute_hides_at_most_its_own_time_and_the_share_that_can_be_hidden(
    under: float, left: float
) -> None:
    assert exposed_s(np.array([10.0]), 0.9, np.array([under]))[0] == pytest.approx(left)


def test_a_pipeline_pays_its_bubble_on_everything_that_repeats() -> None:
    found = times({"pipeline": 4, "fsdp": 4}, gradient_accumulation=16)
    once = {"bubble_s", "data_exposed_s", "optimizer_s", "overhead_s", "straggler_s"}
    repeated = sum(value for name, value in found.items() if name not in once)
    assert found["bubble_s"] == pytest.approx(3 / 16 * repeated)


def test_sequence_parallel_hides_more_of_the_same_traffic() -> None:
    whole = times({"fsdp": 4, "tensor": 4}, microbatch=16)
    cut = times({"fsdp": 4, "tensor": 4}, microbatch=16, sequence_parallel=True)
    assert cut["tensor_exposed_s"] < whole["tensor_exposed_s"]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4, 8]))
def test_terms_are_finite_and_not_negative(tensor: int, context: int, micro: int) -> None:
    fsdp = max(1, 16 // (tensor * context))
    for value in times(
        {"tensor": tensor, "context": context, "fsdp": fsdp}, microbatch=micro
    ).values():
        assert 0.0 <= value < 1e4


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2, 4]))
def test_cutting_the_same_tokens_otherwise_costs_no_matmul_time_but_tile_losses(
    tensor: int,
) -> None:
    # Matmul seconds of a step do not depend on how tokens are cut, but for tile losses.
    found = times({"fsdp": 16 // tensor, "tensor": tensor}, microbatch=4 * tensor)
    assert found["matmul_s"] == pytest.approx(
        times({"fsdp": 16}, microbatch=4)["matmul_s"], rel=0.1
    )


def test_stages_hide_tokens_that_travel_under_another_microbatch() -> None:
    known = load_calibration()
    shares = {"expert_overlap": 0.0, "expert_overlap_staged": 1.0}
    fixed = {name: Constant(value=value, source="here") for name, value in shares.items()}
    gpu = {**known.platforms["gpu"], **fixed}
    every = known.model_copy(update={"platforms": {**known.platforms, "gpu": gpu}, "stacks": {}})
    work = job(
        "mixtral-8x7b",
        "h100:2x8",
        batch=64,
        constraints=Constraints(expert_divides=True, weights_over_context=False),
    )
    waits = [
        estimate(
            LayoutTable.of(
                [layout(work, degrees, expert_divides=True, gradient_accumulation=accumulation)]
            ),
            work,
            calibration=every,
        ).terms["time.expert_exposed_s"][0]
        for degrees, accumulation in (
            ({"data": 16, "expert": 8}, 4),
            ({"pipeline": 2, "data": 8, "expert": 8}, 8),
        )
    ]
    assert waits[0] > 0.0
    assert waits[1] == 0.0
