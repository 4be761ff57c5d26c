from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimate_build import at, job, layout
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.estimate.calibration import Constant, load_calibration
from prompts_agent.estimate.collectives import data_s, ring_latency_s
from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.memory import memory_terms
from prompts_agent.estimate.step_time import exposed_s, step_time
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.framework import Framework
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


def test_nanotron_s_microbatches_wait_on_large_clusters() -> None:
    """1.4 s a microbatch on 512 devices, an eighth on 256, nothing for other software."""
    knobs = {"microbatch": 1, "gradient_accumulation": 4}
    for nodes, expected_s in ((64, 1.4), (32, 1.4 / 8)):
        for framework, stall_s in ((Framework.NANOTRON, expected_s), (Framework.NEMO, 0.0)):
            work = job(topology=f"h100:{nodes}x8", batch=32 * nodes, framework=framework)
            one = at(work, {"data": 8 * nodes}, **knobs)
            assert step_time(one, memory_terms(one))["stall_s"][0] == pytest.approx(4 * stall_s)


def test_gradients_in_pieces_pay_a_ring_s_latency_each() -> None:
    """Reduced in pieces of 25 MB by PyTorch's DDP: with twice the latency the exposed time grows by
    that of every piece, forth and back.
    """
    work = job(topology="h100:4x8", batch=32, framework=Framework.NANOTRON)
    one = at(work, {"data": 32}, microbatch=1, gradient_accumulation=1)
    gradients = memory_terms(one)["gradients"]
    pieces = float(np.ceil(gradients[0] / 25e6))
    ring_s = float(ring_latency_s(one.links, (Axis.DATA, Axis.CONTEXT))[0])
    # 4 nodes of 8: three steps across, and the hops of one node.
    hops_s = one.links.hop_latency_s * float(one.links.of(Axis.DATA)[1][0])
    assert ring_s == pytest.approx(3 * one.links.network_latency_s + hops_s)
    whole = replace(one, constants=one.constants.model_copy(update={"bucket_bytes": 1e12}))
    longer_s = data_s(one, gradients)[0] - data_s(whole, gradients)[0]
    assert longer_s == pytest.approx(2.0 * (pieces - 1.0) * ring_s)
