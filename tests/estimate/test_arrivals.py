"""Requests that come at a rate: limits that queueing theory states, and Little's law."""

from __future__ import annotations

import math

import pytest
from estimate_build import at

from prompts_agent.errors import WorkloadError
from prompts_agent.estimate.estimator import estimate as estimate_rows
from prompts_agent.estimate.estimator import propose
from prompts_agent.estimate.memory import memory_terms
from prompts_agent.estimate.memory_serving import cache_bytes
from prompts_agent.estimate.serving import serving_times
from prompts_agent.estimate.serving_steps import decode_step, prefill_step
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Phase, Traffic, Workload

OUTPUT, PROMPT, TOGETHER = 256, 2048, 64


def work(rate: float, together: int = TOGETHER) -> Workload:
    return Workload(
        name="open loop",
        model=find_model("llama3-8b"),
        topology=parse_topology("h100:1x8"),
        phase=Phase.SERVE,
        global_batch=together,
        sequence=PROMPT + OUTPUT,
        traffic=Traffic(input_tokens=PROMPT, output_tokens=OUTPUT, requests_per_s=rate),
    )


def times(rate: float, degrees: dict[str, int], together: int = TOGETHER) -> dict[str, float]:
    setting = at(work(rate, together), degrees)
    found = serving_times(setting, memory_terms(setting)["kv_cache"])
    return {name: float(value[0]) for name, value in found.items()}


def steps(sequences: int) -> tuple[float, float]:
    """(decode step of so many, prefill of one prompt) on tensor 8."""
    setting = at(work(1.0), {"tensor": 8})
    many = setting.sizes.tensor * 0.0 + sequences
    decode = sum(
        float(v[0]) for v in decode_step(setting, many, cache_bytes(setting, many)).values()
    )
    return decode, sum(float(v[0]) for v in prefill_step(setting, PROMPT, 1.0).values())


def capacity() -> float:
    """64 requests are done in 64 prefills and 256 decode steps of 64."""
    decode, prefill = steps(TOGETHER)
    return TOGETHER / (OUTPUT * decode + TOGETHER * prefill)


def test_a_rare_request_finds_nobody() -> None:
    decode, prefill = steps(1)
    found = times(1e-6, {"tensor": 8})
    assert found["ttft_s"] == pytest.approx(prefill, rel=1e-4)
    assert found["tpot_s"] == pytest.approx(decode, rel=1e-4)
    assert found["utilisation"] == pytest.approx(1e-6 / capacity(), rel=1e-6)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_little_s_law_holds(share: float) -> None:
    rate = share * capacity()
    found = times(rate, {"tensor": 8})
    assert found["utilisation"] == pytest.approx(share)
    # What is in flight is what comes while one request writes its tokens.
    assert found["running_sequences"] == pytest.approx(rate * OUTPUT * found["tpot_s"], rel=1e-6)
    # What it could serve, whatever is asked.
    assert found["tokens_per_s"] == pytest.approx(capacity() * OUTPUT)


def test_one_place_is_a_queue_of_one_server() -> None:
    # Pollaczek and Khinchine at half load with equal times: a wait of half of one service.
    decode, prefill = steps(1)
    service = OUTPUT * decode + prefill
    found = times(0.5 / service, {"tensor": 8}, together=1)
    assert found["utilisation"] == pytest.approx(0.5)
    running = found["running_sequences"]
    # Half of a decode step in those 1 - e^-b of cases in which one runs.
    unloaded = prefill + 0.5 * decode * (1.0 - math.exp(-running))
    served = OUTPUT * decode + running * prefill
    assert found["ttft_s"] - unloaded == pytest.approx(0.5 * served)


def test_beyond_its_capacity_a_server_falls_behind() -> None:
    found = times(1.5 * capacity(), {"tensor": 8})
    assert found["utilisation"] == pytest.approx(1.5)
    assert found["running_sequences"] == TOGETHER
    assert found["tokens_per_s"] == pytest.approx(capacity() * OUTPUT)
    # After an hour a third of what came waits, half an hour's work.
    assert found["ttft_s"] == pytest.approx(1800.0, rel=0.01)


def test_replicas_share_the_arrivals() -> None:
    one, two = times(2.0, {"tensor": 4}, 32), times(4.0, {"data": 2, "tensor": 4}, 64)
    assert two["utilisation"] == pytest.approx(one["utilisation"])
    assert two["ttft_s"] == pytest.approx(one["ttft_s"])
    assert two["tokens_per_s"] == pytest.approx(2 * one["tokens_per_s"])


def test_waiting_grows_with_the_rate() -> None:
    rates = [share * capacity() for share in (0.2, 0.6, 0.9, 0.99)]
    waits = [times(rate, {"tensor": 8})["ttft_s"] for rate in rates]
    assert waits == sorted(waits)
    assert all(map(math.isfinite, waits))


def test_of_servers_that_keep_up_the_one_with_most_to_spare_is_first() -> None:
    asked = work(20.0)
    table = enumerate_layouts(search_space(asked)).table
    found = estimate_rows(table, asked)
    used = found.terms["load.utilisation"]
    fits = found.hbm_high_bytes < 80e9
    first = propose(found, table, asked)[0]
    assert used[first] <= used[fits].min() * 1.02
    assert used[first] < 1.0


def test_a_load_is_one_of_two() -> None:
    with pytest.raises(WorkloadError, match="Give one of the two"):
        Traffic(input_tokens=1, output_tokens=1, concurrency=1, requests_per_s=1.0)
