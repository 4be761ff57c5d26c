from __future__ import annotations

import math

import numpy as np
import pytest
from estimate_build import at, job, layout, table

from prompts_agent.estimate.calibration import load_calibration
from prompts_agent.estimate.estimator import estimate, rank
from prompts_agent.estimate.memory import memory_terms
from prompts_agent.estimate.memory_serving import cache_room, running_sequences
from prompts_agent.estimate.ranking import beyond_limits, expert_order, tie_reason
from prompts_agent.estimate.serving import serving_times
from prompts_agent.estimate.serving_steps import touched_experts
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import KV_DTYPES, LayoutTable
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Constraints, Phase, Precision, Traffic, Workload

HBM = 3.35e12
"""Bytes/s of an H100, NVIDIA's data sheet."""


def constant(name: str) -> float:
    return float(getattr(load_calibration().constants("gpu", "vllm"), name))


def decode(model: str = "llama3-8b", topology: str = "h100:1x8", batch: int = 8) -> Workload:
    return job(
        model,
        topology,
        batch=batch,
        sequence=4096,
        phase=Phase.DECODE,
        precision=Precision(weights="bf16"),
    )


def mixed(
    model: str = "llama3-8b", topology: str = "h100:1x8", batch: int = 8, **traffic: int
) -> Workload:
    load = {"input_tokens": 2048, "output_tokens": 256} | traffic
    return decode(model, topology, batch).model_copy(
        update={
            "phase": Phase.SERVE,
            "traffic": Traffic.model_validate(load | {"concurrency": batch}),
        }
    )


def times(work: Workload, degrees: dict[str, int], **knobs: object) -> dict[str, float]:
    setting_at = at(work, degrees, **knobs)
    found = serving_times(setting_at, memory_terms(setting_at)["kv_cache"])
    return {name: float(value[0]) for name, value in found.items()}


def test_a_decode_step_reads_every_weight_once() -> None:
    # llama3-8B without its token table and norms: 32 × (41.9 M + 176.2 M) + 525 M of 2 bytes.
    weights = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 128256 * 4096
    found = times(decode(), {"data": 8})
    share = constant("serving_hbm_efficiency")
    assert found["weights_s"] == pytest.approx(2 * weights / (share * HBM))


def test_a_decode_step_reads_the_cache_of_its_sequences() -> None:
    # 32 layers × 8 heads × 128 × 2 (k, v) × 2 bytes = 131,072 bytes a token.
    found = times(decode(batch=64), {"data": 8})
    share = constant("serving_hbm_efficiency")
    assert found["kv_s"] == pytest.approx(8 * 4096 * 131072 / (share * HBM))


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
    # Among half of them: 4 × (1 - 0.5²) = 3 for two tokens, never more than 4.
    assert list(touched_experts(8, 2, tokens, 0.5)) == pytest.approx([2.0, 3.0, 4.0])


def test_whole_experts_are_uneven_in_small_steps_and_cut_ones_narrow() -> None:
    # qwen3-235b: 128 experts of 1536. One sequence meets 8; on the busiest of 8 ranks more than one
    # lies, while experts cut in 8 are read evenly. With 512 sequences every rank reads all it has,
    # and an expert cut to 192 columns is the slower one.
    moe = "qwen3-235b-a22b"
    for batch, cut_is_faster in ((1, True), (512, False)):
        work = mixed(moe, batch=batch).model_copy(
            update={"precision": Precision(weights="fp8"), "phase": Phase.DECODE}
        )
        cut = times(work, {"tensor": 8}, expert_divides=True)
        whole = times(work, {"tensor": 8, "expert": 8}, expert_divides=True)
        assert (cut["weights_s"] < whole["weights_s"]) is cut_is_faster
        # Either way the ranks hold the same tokens and reduce twice a layer.
        assert cut["exposed_s"] == pytest.approx(whole["exposed_s"])


def test_data_ranks_that_share_experts_are_groups_of_one_replica() -> None:
    work = decode("qwen3-235b-a22b", batch=64).model_copy(
        update={"precision": Precision(weights="fp8")}
    )
    spread = times(work, {"data": 8, "expert": 8}, expert_divides=True)
    groups = times(work, {"tensor": 8, "expert": 8}, expert_divides=True, attention_data=8)
    assert spread == groups


def test_a_cycle_is_every_prompt_and_every_token_once() -> None:
    # 8 sequences a replica: 8 prompts and 256 steps give 8 × 256 tokens, however they are mixed;
    # the first token's half step and the last token's are the difference.
    work, pure = mixed(), decode().model_copy(update={"traffic": mixed().traffic})
    found, alone = times(work, {"tensor": 8}), times(pure, {"tensor": 8})
    decode_s = found["tpot_s"] - found["prefill_s"]
    cycle = 8 * 256 / found["tokens_per_s"]
    assert cycle == pytest.approx(8 * alone["ttft_s"] + 256 * decode_s, rel=0.01)


def test_prompts_wait_for_those_ahead() -> None:
    # Of 16 sequences, 0.5 × sqrt(16) = 2 prompts ahead where the constant is a half.
    found = times(mixed(batch=16), {"tensor": 8})
    alone = times(mixed(batch=1), {"tensor": 8})
    decode_s = found["tpot_s"] - found["prefill_s"]
    ahead = constant("prompt_queue") * math.sqrt(16)
    prompt_s = alone["ttft_s"] - 0.5 * alone["tpot_s"]
    assert found["ttft_s"] == pytest.approx((1 + ahead) * prompt_s + 0.5 * decode_s)


def test_requests_beyond_the_cache_wait_for_a_place() -> None:
    # llama3-70b in fp8 on two H100s: 35 of 0.9 × 80 GB are weights, and a sequence of 8192 + 512
    # tokens holds 80 layers × 8 heads × 128 × 2 × 2 bytes ÷ 2 ranks × 8704 = 1.43 GB.
    work = mixed("llama3-70b", "h100:1x2", batch=64, input_tokens=8192, output_tokens=1024)
    work = work.model_copy(update={"precision": Precision(weights="fp8")})
    setting_at = at(work, {"tensor": 2})
    running = float(running_sequences(setting_at)[0])
    assert running == float(cache_room(setting_at)[0])
    assert 18 <= running <= (72 - 35) / 1.43
    found = times(work, {"tensor": 2})
    served = running * 1024 / found["tokens_per_s"]
    assert found["ttft_s"] > (64 / running - 1) * served
    # The cache never asks for more than there is.
    need = sum(float(value[0]) for value in memory_terms(setting_at).values())
    assert need < 80 * 2**30


def test_a_decode_step_is_never_cut_to_what_fits() -> None:
    work = decode("llama3-70b", "h100:1x2", batch=64)
    assert float(running_sequences(at(work, {"tensor": 2}))[0]) == 64


def test_servers_have_constants_of_their_own() -> None:
    work = mixed()
    named = [
        times(work.model_copy(update={"framework": framework}), {"tensor": 8})["tpot_s"]
        for framework in (None, Framework.VLLM, Framework.TENSORRT_LLM)
    ]
    assert named[0] == named[1] != named[2]


@pytest.mark.parametrize(
    ("phase", "total"),
    [(Phase.PREFILL, "ttft_s"), (Phase.DECODE, "tpot_s"), (Phase.SERVE, "tpot_s")],
)
def test_the_parts_of_a_serving_step_are_all_of_it(phase: Phase, total: str) -> None:
    found = times(decode(batch=64).model_copy(update={"phase": phase}), {"tensor": 4, "data": 2})
    parts = set(found) - {"ttft_s", "tpot_s", "tokens_per_s", "running_sequences"}
    assert sum(found[name] for name in parts) == pytest.approx(found[total])


def test_attention_data_trades_weights_for_cache() -> None:
    work = decode("qwen2.5-72b", "h100:2x8", batch=128)
    whole = estimate(table(work, {"tensor": 16}), work)
    split = estimate(table(work, {"tensor": 16}, attention_data=2), work)
    cache, weights = "memory.kv_cache_bytes", "memory.weights_bytes"
    assert split.terms[cache][0] == pytest.approx(whole.terms[cache][0] / 2)
    assert split.terms[weights][0] > whole.terms[weights][0]


def test_what_breaks_a_limit_ranks_behind_what_keeps_it() -> None:
    # With fewer sequences at once a replica makes fewer tokens, and each of them sooner.
    free = mixed(batch=256)
    rows = LayoutTable.of(
        [layout(free, {"tensor": 8}), layout(free, {"tensor": 8}, batch_limit=16)]
    )
    found = estimate(rows, free)
    assert list(rank(found, rows, free)) == [0, 1]
    slow, quick = found.terms["serving.tpot_s"]
    assert quick < slow
    limit = float(quick + slow) / 2
    assert free.traffic is not None
    traffic = free.traffic.model_copy(update={"tpot_limit_s": limit})
    limited = free.model_copy(update={"traffic": traffic})
    assert list(rank(estimate(rows, limited), rows, limited)) == [1, 0]
    assert list(beyond_limits(found, traffic)) == pytest.approx([slow / limit, 1.0])


def test_a_limit_opens_the_batch_to_the_search() -> None:
    # 256 sequences: of one replica 128, 64, … 1 at once, or no limit.
    free = mixed(batch=256)
    assert set(enumerate_layouts(search_space(free)).table.batch_limit) == {0}
    assert free.traffic is not None
    traffic = free.traffic.model_copy(update={"tpot_limit_s": 0.01})
    table = enumerate_layouts(search_space(free.model_copy(update={"traffic": traffic}))).table
    whole = table.batch_limit[(table.size(Axis.TENSOR) == 8) & (table.attention_data == 1)]
    assert sorted(whole) == [0, 1, 2, 4, 8, 16, 32, 64, 128]


def test_requests_beyond_a_batch_limit_wait() -> None:
    work = mixed(batch=64)
    found = times(work, {"tensor": 8}, batch_limit=16)
    served = 16 * 256 / found["tokens_per_s"]
    assert found["running_sequences"] == 16
    assert found["ttft_s"] > 3 * served


def test_a_narrower_cache_is_tried_where_it_is_allowed() -> None:
    # llama3-8B on one H100: 16 of 72 GB are weights; the cache holds half as much in fp8.
    work = mixed(topology="h100:1x1", batch=256, input_tokens=4096)
    assert set(enumerate_layouts(search_space(work)).table.kv_dtype) == {0}
    both = work.model_copy(update={"constraints": Constraints(kv_dtypes=("bf16", "fp8"))})
    rows = enumerate_layouts(search_space(both)).table
    assert [KV_DTYPES[one] for one in rows.kv_dtype] == ["bf16", "fp8"]
    running = estimate(rows, both).terms["load.running_sequences"]
    assert running[1] == pytest.approx(2 * running[0], abs=1)


def test_whole_experts_go_first_where_the_times_say_nothing() -> None:
    work = mixed("qwen3-235b-a22b", batch=64)
    layouts = [
        layout(work, {"tensor": 8} | experts, expert_divides=True)
        for experts in ({}, {"expert": 4}, {"expert": 8})
    ]
    assert [expert_order(one) for one in layouts] == [1, 2, 0]
    reason = tie_reason(layouts[2], layouts[0], serving=True)
    assert reason == "whole experts"
    # In training it is one axis more, and says nothing of how experts are held.
    assert tie_reason(layouts[0], layouts[2]) == "fewer axes"
