from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.errors import WorkloadError
from prompts_agent.serving import traffic as t
from prompts_agent.workload.workload import Traffic

OPEN = Traffic(input_tokens=1000, output_tokens=101, requests_per_s=4.0)
CLOSED = Traffic(input_tokens=1000, output_tokens=101, concurrency=10)


def test_a_request_takes_its_first_token_and_the_rest() -> None:
    assert t.request_time_s(OPEN, ttft_s=0.5, tpot_s=0.02) == pytest.approx(2.5)


def test_little_s_law_both_ways() -> None:
    # 4 requests a second of 2.5 s each: 10 in flight; 10 in flight of 2.5 s: 4 a second.
    assert t.sequences_in_flight(OPEN, ttft_s=0.5, tpot_s=0.02) == pytest.approx(10.0)
    assert t.sequences_in_flight(CLOSED, ttft_s=0.5, tpot_s=0.02) == 10.0
    assert t.requests_per_s(CLOSED, ttft_s=0.5, tpot_s=0.02) == pytest.approx(4.0)
    assert t.requests_per_s(OPEN, ttft_s=9.0, tpot_s=9.0) == 4.0


def test_traffic_that_says_neither_is_refused() -> None:
    with pytest.raises(WorkloadError, match="concurrency"):
        t.sequences_in_flight(Traffic(input_tokens=1, output_tokens=1), ttft_s=1.0, tpot_s=1.0)


def test_the_cache_holds_the_prompt_and_half_of_the_answer() -> None:
    assert t.held_tokens(OPEN) == pytest.approx(1050.5)
    # 10 sequences, 8 tokens of a page lost each, 131072 bytes a token (llama3-8B).
    need = t.kv_demand_bytes(OPEN, sequences=10, kv_bytes_per_token=131072)
    assert need == pytest.approx(10 * 1058.5 * 131072)


def test_occupancy_is_the_share_of_slots_in_use() -> None:
    share = {"ttft_s": 0.5, "tpot_s": 0.02}
    assert t.occupancy(OPEN, **share, replicas=2, batch_limit=8) == pytest.approx(10 / 16)
    assert t.occupancy(OPEN, **share, replicas=1, batch_limit=8) == 1.0
    with pytest.raises(WorkloadError, match="slot"):
        t.occupancy(OPEN, **share, replicas=0, batch_limit=8)


def test_replicas_hold_what_is_in_flight() -> None:
    share = {"ttft_s": 0.5, "tpot_s": 0.02}
    assert t.replicas_needed(OPEN, **share, sequences_per_replica=4) == 3
    assert t.replicas_needed(OPEN, **share, sequences_per_replica=100) == 1


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 100.0), st.floats(0.001, 10.0), st.floats(0.001, 1.0))
def test_little_s_law_holds_for_every_load(rate: float, ttft: float, tpot: float) -> None:
    load = OPEN.model_copy(update={"requests_per_s": rate})
    in_flight = t.sequences_in_flight(load, ttft_s=ttft, tpot_s=tpot)
    assert in_flight / t.request_time_s(load, ttft_s=ttft, tpot_s=tpot) == pytest.approx(rate)
