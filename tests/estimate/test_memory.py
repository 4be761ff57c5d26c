from __future__ import annotations

import pytest
from estimate_build import job, table
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts_agent.estimate.fit import compiled_cases
from prompts_agent.estimate.memory import memory
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.units import GIB
from prompts_agent.workload.workload import Constraints, Phase, Precision

# A trainer of its own, not a compiler's: what is kept is what its kernels read.
EAGER = Constraints(axes=(Axis.PIPELINE, Axis.DATA, Axis.FSDP, Axis.TENSOR), expert_divides=True)

# llama2-7B has 6738415616 parameters, of which 65 norms of 4096 are whole on every device.
NORMS = 65 * 4096
CUT = 6738415616 - NORMS


def total(terms: dict[str, object]) -> float:
    return float(sum(value[0] for value in terms.values()))  # type: ignore[index]


def test_adamw_in_fp32_is_16_bytes_a_parameter_over_16_fsdp_shards() -> None:
    # ZeRO (arXiv 1910.02054): 4 master + 8 optimizer + 4 fp32 gradient bytes.
    work = job()
    terms = memory(table(work, {"fsdp": 16}), work)
    state = terms["weights"] + terms["gradients"] + terms["optimizer"]
    assert state[0] == pytest.approx(16 * CUT / 16 + 16 * NORMS)


def test_zero_1_cuts_master_weights_and_optimizer_over_data_and_keeps_the_compute_copy() -> None:
    work = job()
    terms = memory(table(work, {"data": 16}, zero_stage=1), work)
    assert terms["optimizer"][0] == pytest.approx(8 * CUT / 16 + 8 * NORMS)
    assert terms["weights"][0] == pytest.approx((4 / 16 + 2) * CUT + 6 * NORMS)
    assert terms["gradients"][0] == pytest.approx(4 * (CUT + NORMS))


def test_zero_0_keeps_everything_on_every_data_rank() -> None:
    work = job()
    terms = memory(table(work, {"data": 16}, zero_stage=0), work)
    assert terms["optimizer"][0] == pytest.approx(8 * (CUT + NORMS))


def test_context_cuts_weights_only_where_told_to() -> None:
    work = job()
    cut = memory(table(work, {"fsdp": 4, "context": 4}), work)
    whole = memory(
        table(work, {"fsdp": 4, "context": 4}, weights_over_context=False, zero_stage=0), work
    )
    assert whole["gradients"][0] - 4 * NORMS == pytest.approx(4 * (cut["gradients"][0] - 4 * NORMS))


def test_remat_full_keeps_the_input_of_every_layer() -> None:
    # 4096 tokens × 32 layers × 4096 × 2 bytes is 1 GiB.
    work = job()
    assert memory(table(work, {"fsdp": 16}), work)["activations"][0] == pytest.approx(GIB)


def test_remat_none_keeps_what_the_backward_pass_reads() -> None:
    # Per token and layer: 4 residuals, q k v and attention output (4 × 4096), gate, up and their
    # product (3 × 11008), 2 bytes each, and 32 fp32 row sums.
    per_token = 2 * (4 * 4096 + 4 * 4096 + 3 * 11008) + 4 * 32
    work = job("llama2-7b", "h100:2x8", constraints=EAGER)
    terms = memory(table(work, {"data": 16}, remat=Remat.NONE), work)
    assert terms["activations"][0] == pytest.approx(4096 * 32 * per_token)


def test_a_compiler_keeps_more_under_remat_none() -> None:
    # 6 residuals, q and the attention's output one and a half times, k and v twice, gate, up,
    # product and slope: 2 × (6 × 4096 + 3 × 4096 + 4 × 1024 + 4 × 12288) + 128 = 180,352 bytes for
    # qwen3-8b; XLA's report has 183 KB.
    work = job("qwen3-8b", "v6e:2x4", batch=8, sequence=2048)
    terms = memory(table(work, {"fsdp": 8}, remat=Remat.NONE), work)
    assert terms["activations"][0] == pytest.approx(2048 * 36 * 180_352)


def test_offload_keeps_two_layers_of_inputs_queries_keys_and_values() -> None:
    # llama3-8b: 2 × (4096 + 4096 + 2 × 1024) = 20,480 bytes a token and layer.
    work = job("llama3-8b", "v6e:2x4", batch=24, sequence=8192)
    found = memory(table(work, {"fsdp": 8}, microbatch=3, remat=Remat.OFFLOAD), work)
    assert found["activations"][0] == pytest.approx(3 * 8192 * 2 * 20_480)


def test_residuals_are_whole_on_tensor_ranks_unless_sequence_parallel() -> None:
    work = job()
    whole = memory(table(work, {"tensor": 16}, microbatch=16), work)["activations"][0]
    cut = memory(table(work, {"tensor": 16}, microbatch=16, sequence_parallel=True), work)
    assert whole == pytest.approx(16 * GIB)
    assert cut["activations"][0] == pytest.approx(GIB)


def test_a_1f1b_pipeline_holds_as_many_microbatches_as_stages() -> None:
    # 4 stages of 8 layers, 4 in flight: as much as one microbatch through 32 layers.
    work = job("llama2-7b", "h100:2x8", constraints=EAGER)
    terms = memory(table(work, {"pipeline": 4, "fsdp": 4}, gradient_accumulation=8), work)
    assert terms["activations"][0] == pytest.approx(GIB)
    few = memory(table(work, {"pipeline": 4, "fsdp": 4}, gradient_accumulation=2), work)
    assert few["activations"][0] == pytest.approx(GIB / 2)


def test_a_compiler_s_pipeline_holds_every_microbatch() -> None:
    # 4 stages of 8 layers, 8 microbatches and 3 of the bubble: 11 × a quarter of GIB.
    work = job()
    terms = memory(table(work, {"pipeline": 4, "fsdp": 4}, gradient_accumulation=8), work)
    assert terms["activations"][0] == pytest.approx(11 * GIB / 4)


def test_interleaved_stages_hold_more_by_the_warm_up() -> None:
    # arXiv 2205.05198, section 4.2.1: 1 + (p - 1)/(p m) with p = 4 stages and m = 2 chunks.
    work = job("llama2-7b", "h100:2x8", constraints=EAGER)
    terms = memory(
        table(
            work,
            {"pipeline": 4, "fsdp": 4},
            gradient_accumulation=8,
            schedule="interleaved",
            virtual_stages=2,
        ),
        work,
    )
    assert terms["activations"][0] == pytest.approx(GIB * (1 + 3 / 8))


def test_logits_of_a_large_vocabulary_set_the_peak() -> None:
    # llama3-8B, 8192 tokens a device: 8192 × 128256 logits of 2 bytes are 2.1 GB on a TPU.
    work = job("llama3-8b", "v6e:16x16", batch=256, sequence=8192)
    terms = memory(table(work, {"fsdp": 256}), work)
    assert terms["logits"][0] == pytest.approx(8192 * 128256 * 2)
    assert terms["layer_work"][0] == 0.0


def test_experts_are_cut_over_the_expert_axis_in_both_meanings() -> None:
    # mixtral: 32 layers × 8 experts × 3 × 4096 × 14336 parameters; 8 of 64 ranks share a copy.
    experts = 32 * 8 * 3 * 4096 * 14336
    work = job("mixtral-8x7b", "h100:8x8", batch=64)
    divided = memory(
        table(work, {"data": 64, "expert": 8}, expert_divides=True, zero_stage=0), work
    )
    whole = memory(table(work, {"data": 64}, zero_stage=0), work)
    saved = whole["gradients"][0] - divided["gradients"][0]
    assert saved == pytest.approx(4 * experts * 7 / 8)
    factor = memory(table(work, {"data": 8, "expert": 8}, zero_stage=0), work)
    assert factor["gradients"][0] < divided["gradients"][0]


def test_ranks_that_gather_an_expert_are_no_copies_of_it() -> None:
    # Experts over 2 of 8 fsdp ranks: the 4 ranks of one part cut it, so all 8 hold it once, and
    # ZeRO-1 finds no copy to cut further.
    work = job("mixtral-8x7b", "h100:1x8", batch=8)
    cut = memory(table(work, {"fsdp": 8, "expert": 2}, expert_divides=True, zero_stage=1), work)
    plain = memory(table(work, {"fsdp": 8}, zero_stage=1), work)
    assert cut["optimizer"][0] == pytest.approx(plain["optimizer"][0])


def serving(**fields: object):  # type: ignore[no-untyped-def]
    return job(
        "llama3-8b",
        "h100:2x8",
        batch=16,
        sequence=8192,
        phase=Phase.DECODE,
        precision=Precision(weights="bf16"),
        **fields,
    )


def test_the_cache_of_llama3_8b_is_128_kib_a_token_over_tensor_8() -> None:
    # 2 × 8 kv heads × 128 × 32 layers × 2 bytes = 131072 bytes a token.
    work = serving()
    terms = memory(table(work, {"data": 2, "tensor": 8}), work)
    assert terms["kv_cache"][0] == pytest.approx(8 * 8192 * 131072 / 8)


def test_tensor_beyond_kv_heads_copies_the_cache_and_attention_data_does_not() -> None:
    work = serving()
    copied = memory(table(work, {"tensor": 16}), work)["kv_cache"][0]
    split = memory(table(work, {"tensor": 16}, attention_data=2), work)["kv_cache"][0]
    assert copied == pytest.approx(16 * 8192 * 131072 / 8)
    assert split == pytest.approx(copied / 2)


def test_a_latent_cache_has_no_heads_to_cut() -> None:
    # DeepSeek-V3: 512 + 64 elements a token and layer, 61 layers.
    work = job(
        "deepseek3-671b", "h200:1x8", batch=8, sequence=4096, phase=Phase.DECODE,
        precision=Precision(weights="fp8"),
    )  # fmt: skip
    terms = memory(table(work, {"tensor": 8}), work)
    assert terms["kv_cache"][0] == pytest.approx(8 * 4096 * 576 * 61 * 2)


def test_batch_limit_and_kv_dtype_bound_the_cache() -> None:
    work = serving()
    limited = memory(table(work, {"tensor": 8, "data": 2}, batch_limit=2, kv_dtype="fp8"), work)
    assert limited["kv_cache"][0] == pytest.approx(2 * 8192 * 131072 / 8 / 2)


# Compiled needs (XLA for TPU, no chip attached): every dense one and mixtral without an expert axis
# within 20% or 1 GiB, and every one on the right side of what the compiler allows.
def test_compiled_needs_within_a_fifth_or_one_gib() -> None:
    for case, _, got in compiled_cases():
        if case.degrees.get(Axis.EXPERT, 1) == 1:
            assert got / GIB == pytest.approx(case.need_gib, rel=0.20, abs=1.0), case


def test_compiled_verdicts() -> None:
    for case, work, got in compiled_cases():
        if case.degrees.get(Axis.EXPERT, 1) == 1:
            usable = find_chip(work.topology.chip).usable_hbm_bytes or 0
            assert (got > usable) == (case.need_gib * GIB > usable), case


DEGREES = st.sampled_from([1, 2, 4, 8, 16])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from(list(Remat)), st.booleans())
def test_more_fsdp_never_holds_more_state(fsdp: int, remat: Remat, sharded: bool) -> None:
    work = job()
    knobs = {"remat": remat, "sequence_parallel": sharded}
    less = memory(table(work, {"fsdp": fsdp, "data": 16 // fsdp}, **knobs), work)
    more = memory(table(work, {"fsdp": 2 * fsdp, "data": 8 // fsdp}, **knobs), work)
    for term in ("weights", "gradients", "optimizer"):
        assert more[term][0] <= less[term][0]


@settings(max_examples=40, deadline=None)
@given(DEGREES, DEGREES)
def test_more_remat_never_keeps_more_activations(tensor: int, context: int) -> None:
    work = job(topology="v5e:16x16", batch=256)
    degrees = {"tensor": tensor, "context": context, "fsdp": 256 // (tensor * context)}
    kept = [
        memory(table(work, degrees, remat=remat), work)["activations"][0]
        for remat in (Remat.FULL, Remat.MINIMAL, Remat.NONE)
    ]
    assert kept == sorted(kept)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2, 4, 8, 16]), st.booleans())
def test_every_term_is_finite_and_not_negative(microbatch: int, sharded: bool) -> None:
    work = job()
    knobs = {"microbatch": microbatch, "sequence_parallel": sharded}
    for degrees in ({"tensor": 16}, {"context": 16}, {"pipeline": 4, "tensor": 4}):
        for value in memory(table(work, degrees, **knobs), work).values():
            assert 0.0 <= value[0] < 1e13
