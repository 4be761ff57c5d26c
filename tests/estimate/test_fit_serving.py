from __future__ import annotations

import numpy as np
import pytest
from estimate_build import job, layout

from prompts_agent.estimate.calibration import Calibration, Constant, load_calibration
from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.fit_serving import Served, fit_serving, left_out, misses, served
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Measured, Phase, Precision, Traffic, Workload

SLOW = 0.5
"""Share of HBM bandwidth of a server made up here; what ships is near 0.9."""


def slow_server() -> Calibration:
    known = load_calibration()
    entry = Constant(value=SLOW, source="made up")
    stacks = {
        name: entries | {"serving_hbm_efficiency": entry} for name, entries in known.stacks.items()
    }
    return known.model_copy(update={"stacks": stacks})


def pool(model: str, concurrency: int) -> Workload:
    """Three layouts on eight H100s, as the slow server would have served them."""
    work = job(
        model,
        "h100:1x8",
        batch=concurrency,
        sequence=2048,
        phase=Phase.SERVE,
        precision=Precision(weights="bf16"),
        traffic=Traffic(input_tokens=1024, output_tokens=1024, concurrency=concurrency),
        framework=Framework.VLLM,
    )
    degrees = ({"tensor": 8}, {"data": 2, "tensor": 4}, {"data": 4, "tensor": 2})
    layouts = [layout(work, one) for one in degrees]
    found = estimate(LayoutTable.of(layouts), work, calibration=slow_server())
    rows = [
        Measured(
            layout=one,
            tokens_per_s=float(found.tokens_per_s[i]),
            tpot_s=float(found.terms["serving.tpot_s"][i]),
            source="made up",
        )
        for i, one in enumerate(layouts)
    ]
    return work.model_copy(update={"alternatives": tuple(rows)})


POOLS = [pool(model, load) for model in ("llama3-8b", "qwen3-32b") for load in (8, 64)]


def test_a_fit_finds_what_made_the_runs() -> None:
    start = load_calibration()
    points = served(POOLS, start)
    before = np.concatenate([misses(one, start)["tokens_per_s"] for one in points])
    # Twice the bandwidth where reading weights is most of a token: far too fast.
    assert np.median(before) > 0.2
    fitted = fit_serving(points, start)
    after = np.concatenate([misses(one, fitted)["tokens_per_s"] for one in points])
    assert np.max(np.abs(after)) < 0.08
    share = fitted.constants("gpu", "vllm").serving_hbm_efficiency
    assert share == pytest.approx(SLOW, abs=0.1)


def test_only_servers_are_fitted() -> None:
    start = load_calibration()
    fitted = fit_serving(served(POOLS, start), start)
    assert fitted.platforms == start.platforms
    assert fitted.stacks["megatron"] == start.stacks["megatron"]
    assert fit_serving([], start) == start


def test_what_was_not_measured_is_no_point() -> None:
    start = load_calibration()
    (one,) = served(POOLS[:1], start)
    # Neither is zero: no first token was timed.
    assert np.all(np.isnan(misses(one, start)["ttft_s"]))
    assert not served([POOLS[0].model_copy(update={"alternatives": ()})], start)
    assert not served([job()], start)


def test_intervals_are_those_of_families_left_out() -> None:
    known, fitted = left_out(with_first_tokens(), load_calibration(), passes=1)
    assert known.serving == fitted.cross_validated
    assert fitted.cross_validated.cases == fitted.plain.cases == 12
    assert known.ttft.cases == 12


def test_the_interval_of_first_tokens_stays_where_none_was_timed() -> None:
    start = load_calibration()
    known, _ = left_out(served(POOLS, start), start, passes=1)
    assert known.ttft == start.ttft


def with_first_tokens() -> list[Served]:
    timed = [
        work.model_copy(
            update={
                "alternatives": tuple(
                    row.model_copy(update={"ttft_s": 0.2}) for row in work.alternatives
                )
            }
        )
        for work in POOLS
    ]
    return list(served(timed, load_calibration()))
