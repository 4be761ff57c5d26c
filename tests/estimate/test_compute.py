from __future__ import annotations

import pytest
from estimate_build import at, job
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.estimate import compute
from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.layout.layout import Remat

CONSTANTS = load_calibration().constants("tpu", None, "v5e")


def test_matmuls_are_8_flop_a_parameter_and_token_under_remat_full() -> None:
    # llama2-7B: 32 layers of 4 × 4096² + 3 × 4096 × 11008 weights in matmuls, 4096 tokens on a v5e.
    attention, mlp = 4 * 4096**2, 3 * 4096 * 11008
    peak, half = 197e12, CONSTANTS.matmul_half_extent

    def share(width: float) -> float:
        most = CONSTANTS.matmul_efficiency * CONSTANTS.chip_share
        return most * width / (width + half) * 4096 / (4096 + half)

    expected = 8 * 4096 * 32 * (attention / share(4096) + mlp / share(11008)) / peak
    assert compute.matmul_s(at(job(), {"fsdp": 16}))[0] == pytest.approx(expected)


def test_remat_costs_a_fourth_forward_pass() -> None:
    full = compute.matmul_s(at(job(), {"fsdp": 16}, remat=Remat.FULL))
    none = compute.matmul_s(at(job(), {"fsdp": 16}, remat=Remat.NONE))
    assert full[0] / none[0] == pytest.approx(4 / 3)


def test_causal_attention_sees_half_of_the_sequence() -> None:
    # 4 × T × (S+1)/2 × heads × head_dim, 3.5 passes under remat none, 32 layers.
    flops = 3.5 * 32 * 4 * 4096 * (4097 / 2) * 32 * 128
    seconds = compute.attention_s(at(job(), {"fsdp": 16}, remat=Remat.NONE))[0]
    assert seconds == pytest.approx(flops / (197e12 * CONSTANTS.attention_efficiency))


def test_tensor_ranks_repeat_the_residual_work_unless_it_is_cut() -> None:
    whole = compute.elementwise_s(at(job(), {"tensor": 16}, microbatch=16))[0]
    cut = compute.elementwise_s(at(job(), {"tensor": 16}, microbatch=16, sequence_parallel=True))[0]
    alone = compute.elementwise_s(at(job(), {"fsdp": 16}))[0]
    assert cut == pytest.approx(alone)
    assert whole > 2 * cut


def test_a_matmul_is_never_faster_than_its_weights_are_read() -> None:
    # One sequence of 8 tokens: 6.5e9 weights of 2 bytes, four passes, at a share of 819 GB/s.
    work = job(batch=16, sequence=8)
    seconds = compute.matmul_s(at(work, {"fsdp": 16}))[0]
    weights = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    assert seconds == pytest.approx(4 * 2 * weights / (CONSTANTS.hbm_efficiency * 819e9))


@settings(max_examples=40, deadline=None)
@given(st.floats(1.0, 1e5), st.floats(1.0, 1e5))
def test_efficiency_grows_with_both_extents_and_stays_below_its_limit(a: float, b: float) -> None:
    low = compute.local_efficiency(a, b, CONSTANTS)
    assert (
        low
        <= compute.local_efficiency(2 * a, b, CONSTANTS)
        <= min(CONSTANTS.matmul_efficiency * CONSTANTS.chip_share, 1.0)
    )
    assert low <= compute.local_efficiency(a, 2 * b, CONSTANTS)
