from __future__ import annotations

import pytest
from estimate_build import job

from prompts_agent.estimate.separate_pools import SeparatePools, separate_pools
from prompts_agent.workload.workload import Phase, Precision, Traffic, Workload


def serving(**traffic: float) -> Workload:
    load = {"input_tokens": 4096, "output_tokens": 512, "concurrency": 64} | traffic
    return job(
        "llama3-70b",
        "h100:1x8",
        batch=64,
        sequence=4608,
        phase=Phase.SERVE,
        precision=Precision(weights="fp8"),
        traffic=Traffic.model_validate(load),
    )


def split_of(work: Workload) -> SeparatePools:
    found = separate_pools(work)
    assert found is not None
    return found


def test_a_split_uses_every_device_once() -> None:
    split = split_of(serving())
    used = [pool.workers * pool.layout.devices for pool in (split.prefill, split.decode)]
    assert sum(used) == 8
    assert min(used) >= 1


def test_requests_in_flight_are_those_of_the_load() -> None:
    # Little's law: 64 = requests/s × (TTFT + 512 tokens).
    split = split_of(serving())
    requests_per_s = split.tokens_per_s / 512
    assert requests_per_s * (split.ttft_s + 512 * split.tpot_s) == pytest.approx(64, rel=0.05)


def test_long_prompts_move_devices_to_prefill() -> None:
    def share(split: SeparatePools) -> int:
        return split.prefill.workers * split.prefill.layout.devices

    long = split_of(serving(input_tokens=16384, output_tokens=128))
    short = split_of(serving(input_tokens=512, output_tokens=2048))
    assert share(long) > share(short)


def test_limits_decide_before_throughput() -> None:
    free = split_of(serving())
    limited = split_of(serving(tpot_limit_s=0.95 * free.tpot_s))
    assert limited.tpot_s <= 0.95 * free.tpot_s
    assert limited.tokens_per_s <= free.tokens_per_s


def test_what_is_no_mixed_load_has_no_pools() -> None:
    assert separate_pools(job()) is None
    assert separate_pools(serving().model_copy(update={"phase": Phase.DECODE})) is None
    open_loop = Traffic(input_tokens=128, output_tokens=128, requests_per_s=2.0)
    assert separate_pools(serving().model_copy(update={"traffic": open_loop})) is None
