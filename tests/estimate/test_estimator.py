from __future__ import annotations

import numpy as np
import pytest
from estimate_build import job, layout

from prompts_agent.estimate import estimator
from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.estimate.estimator import estimate, propose, rank, usable_hbm_bytes
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Objective, Phase, Precision, Traffic

WORK = job()


def legal() -> LayoutTable:
    return enumerate_layouts(search_space(WORK)).table


def test_terms_add_up() -> None:
    found = estimate(legal(), WORK)
    time = np.sum([v for k, v in found.terms.items() if k.startswith("time.")], axis=0)
    held = np.sum([v for k, v in found.terms.items() if k.startswith("memory.")], axis=0)
    assert found.step_time_s == pytest.approx(time)
    assert found.hbm_bytes == pytest.approx(held)
    assert found.tokens_per_s * found.step_time_s == pytest.approx(np.full(len(found), 16 * 4096))


def test_intervals_contain_the_estimate_and_are_finite() -> None:
    found = estimate(legal(), WORK)
    assert (found.low_s <= found.step_time_s).all()
    assert (found.step_time_s <= found.high_s).all()
    assert (found.hbm_low_bytes <= found.hbm_bytes).all()
    assert (found.hbm_bytes <= found.hbm_high_bytes).all()
    assert np.isfinite(found.high_s).all()


def test_one_row_and_many_rows_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    table = legal()
    whole = estimate(table, WORK)
    monkeypatch.setattr(estimator, "_CHUNK", 7)
    pieces = estimate(table, WORK)
    assert (whole.step_time_s == pieces.step_time_s).all()
    one = estimate(LayoutTable.of([table.row(3)]), WORK)
    assert one.step_time_s[0] == pytest.approx(whole.step_time_s[3], rel=1e-12)
    assert one.hbm_bytes[0] == whole.hbm_bytes[3]


def test_no_rows_give_no_estimates() -> None:
    empty = legal().take(np.zeros(0, dtype=np.int64))
    assert len(estimate(empty, WORK)) == 0


def test_the_interval_widens_away_from_the_baseline() -> None:
    work = WORK.model_copy(update={"baseline": layout(WORK, {"fsdp": 16})})
    near = layout(WORK, {"fsdp": 8, "tensor": 2}, microbatch=2)
    far = layout(WORK, {"tensor": 16}, microbatch=16)
    found = estimate(LayoutTable.of([work.baseline, near, far]), work)  # type: ignore[list-item]
    width = found.high_s / found.low_s
    assert width[0] < width[1] < width[2]
    residuals = load_calibration().step_time["tpu"]
    assert width[0] == pytest.approx(np.exp(residuals.high - residuals.low))


def test_an_out_of_memory_layout_is_never_proposed() -> None:
    table = legal()
    found = estimate(table, WORK)
    for row in propose(found, table, WORK):
        assert found.hbm_bytes[row] <= usable_hbm_bytes(WORK)


def test_the_order_of_meshes_is_that_of_the_compiled_schedules() -> None:
    # Step times from XLA's scheduled modules (llama2-7B, v5e 4x4, remat full, residuals whole):
    # fsdp 16 1.89 s, fsdp 4 × tensor 4 2.51 s, tensor 16 4.40 s.
    rows = [
        layout(WORK, {"fsdp": 16}),
        layout(WORK, {"fsdp": 4, "tensor": 4}, microbatch=4),
        layout(WORK, {"tensor": 16}, microbatch=16),
    ]
    found = estimate(LayoutTable.of(rows), WORK).step_time_s
    assert list(found) == pytest.approx([1.89, 2.51, 4.40], rel=0.15)


def test_fit_prefers_the_least_memory() -> None:
    table = legal()
    found = estimate(table, WORK)
    first = rank(found, table, WORK, Objective.FIT)[0]
    assert found.hbm_bytes[first] <= found.hbm_bytes.min() * 1.01


def test_a_chip_without_a_published_network_still_gives_numbers() -> None:
    work = job("llama3-8b", "l4:2x8", batch=16)
    table = enumerate_layouts(search_space(work)).table
    assert np.isfinite(estimate(table, work).step_time_s).all()


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE, Phase.SERVE])
@pytest.mark.parametrize("topology", ["h100:1x8", "v6e:2x4", "tpu7x:1x1x1"])
def test_serving_phases_give_finite_numbers(phase: Phase, topology: str) -> None:
    work = job(
        "qwen2.5-32b",
        topology,
        batch=32,
        sequence=4096,
        phase=phase,
        precision=Precision(weights="bf16"),
        traffic=Traffic(input_tokens=2048, output_tokens=512, concurrency=32),
    )
    table = enumerate_layouts(search_space(work)).table
    found = estimate(table, work)
    assert len(found) > 0
    assert np.isfinite(found.step_time_s).all()
    assert (found.tokens_per_s > 0).all()
