from __future__ import annotations

import numpy as np
import pytest
from estimate_build import at, job, table

from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.memory import memory_terms
from prompts_agent.estimate.serving import serving_times, touched_experts
from prompts_agent.workload.workload import Phase, Precision, Traffic, Workload


def decode(model: str = "llama3-8b", topology: str = "h100:1x8", batch: int = 8) -> Workload:
    return job(
        model,
        topology,
        batch=batch,
        sequence=4096,
        phase=Phase.DECODE,
        precision=Precision(weights="bf16"),
    )


def times(work: Workload, degrees: dict[str, int], **knobs: object) -> dict[str, float]:
    setting_at = at(work, degrees, **knobs)
    found = serving_times(setting_at, memory_terms(setting_at)["kv_cache"])
    return {name: float(value[0]) for name, value in found.items()}


def test_a_decode_step_reads_every_weight_once() -> None:
    # llama3-8B without its token table and norms: 32 × (41.9 M + 176.2 M) + 525 M of 2 bytes, at
    # 80% of an H100's 3.35 TB/s.
    weights = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 128256 * 4096
    found = times(decode(), {"data": 8})
    assert found["weights_s"] == pytest.approx(2 * weights / (0.8 * 3.35e12))


def test_a_decode_step_reads_the_cache_of_its_sequences() -> None:
    found = times(decode(batch=64), {"data": 8})
    assert found["kv_s"] == pytest.approx(8 * 4096 * 131072 / (0.8 * 3.35e12))


def test_tensor_ranks_read_less_but_wait_for_each_other() -> None:
    one, eight = times(decode(batch=64), {"data": 8}), times(decode(batch=64), {"tensor": 8})
    assert eight["weights_s"] == pytest.approx(one["weights_s"] / 8)
    assert one["exposed_s"] == 0.0 < eight["exposed_s"]
    assert eight["tpot_s"] < one["tpot_s"]


def test_replicas_add_throughput() -> None:
    few, many = (
        times(decode(batch=32), {"data": 2, "tensor": 4}),
        times(decode(batch=32), {"tensor": 8}),
    )
    assert few["tokens_per_s"] == pytest.approx(2 * 16 / few["tpot_s"])
    assert many["tokens_per_s"] == pytest.approx(32 / many["tpot_s"])


def test_a_pipeline_does_not_shorten_a_token() -> None:
    staged, alone = times(decode(batch=8), {"pipeline": 8}), times(decode(batch=8), {"data": 8})
    assert staged["weights_s"] == pytest.approx(alone["weights_s"], rel=0.01)


def test_touched_experts_follow_uniform_routing() -> None:
    # 8 experts, 2 a token: one token reads 2; two read 8 × (1 - 0.75²) = 3.5; many read all.
    tokens = np.array([1.0, 2.0, 1000.0])
    assert list(touched_experts(8, 2, tokens)) == pytest.approx([2.0, 3.5, 8.0])
    assert list(touched_experts(0, 0, tokens)) == [0.0, 0.0, 0.0]


def test_mixed_serving_shares_the_device_between_prompts_and_tokens() -> None:
    traffic = Traffic(input_tokens=2048, output_tokens=256, concurrency=8)
    both = decode().model_copy(update={"phase": Phase.SERVE, "traffic": traffic})
    alone = decode().model_copy(update={"traffic": traffic})
    mixed, pure = times(both, {"tensor": 8}), times(alone, {"tensor": 8})
    assert mixed["tpot_s"] == pytest.approx(pure["tpot_s"] + 8 * pure["ttft_s"] / 256)
    assert mixed["prefill_s"] == pytest.approx(8 * pure["ttft_s"] / 256)


@pytest.mark.parametrize(
    ("phase", "total"),
    [(Phase.PREFILL, "ttft_s"), (Phase.DECODE, "tpot_s"), (Phase.SERVE, "tpot_s")],
)
def test_the_parts_of_a_serving_step_are_all_of_it(phase: Phase, total: str) -> None:
    found = times(decode(batch=64).model_copy(update={"phase": phase}), {"tensor": 4, "data": 2})
    parts = set(found) - {"ttft_s", "tpot_s", "tokens_per_s"}
    assert sum(found[name] for name in parts) == pytest.approx(found[total])


def test_attention_data_trades_weights_for_cache() -> None:
    work = decode("qwen2.5-72b", "h100:2x8", batch=128)
    whole = estimate(table(work, {"tensor": 16}), work)
    split = estimate(table(work, {"tensor": 16}, attention_data=2), work)
    cache, weights = "memory.kv_cache_bytes", "memory.weights_bytes"
    assert split.terms[cache][0] == pytest.approx(whole.terms[cache][0] / 2)
    assert split.terms[weights][0] > whole.terms[weights][0]
