"""FLOPs against the published formulas, cache sizes against published figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.errors import ModelError
from prompts_agent.model.catalog import find_model
from prompts_agent.model.cost import (
    decode_flops_per_token,
    encoder_flops_per_token,
    forward_flops_per_token,
    kv_bytes,
    kv_bytes_per_token,
    train_flops_per_token,
)
from prompts_agent.model.count import parameters


def test_megatron_formula() -> None:
    # arXiv:2104.04473, appendix, without its recomputation pass: 72·l·h²·(1 + s/6h + V/12lh) a
    # token.
    layers, width, vocab, sequence = 96, 12288, 50257, 2048
    expected = 72 * layers * width**2
    expected *= 1 + sequence / (6 * width) + vocab / (12 * layers * width)
    train = train_flops_per_token(find_model("gpt3-175b"), sequence, causal=False)
    assert train == pytest.approx(expected, rel=1e-12)


def test_palm_formula() -> None:
    # arXiv:2204.02311, appendix B: 6·N + 12·L·H·Q·T, N without the lookup and the norms.
    spec = find_model("llama2-7b")
    expected = 6 * parameters(spec).matmul + 12 * 32 * 32 * 128 * 4096
    assert train_flops_per_token(spec, 4096, causal=False) == pytest.approx(expected, rel=1e-12)


def test_a_causal_token_sees_half() -> None:
    spec = find_model("llama3-8b")
    causal = forward_flops_per_token(spec, 8191)
    whole = forward_flops_per_token(spec, 8191, causal=False)
    assert causal.attention / whole.attention == pytest.approx(8192 / 2 / 8191)
    assert causal.matmul == whole.matmul
    assert causal.total == causal.matmul + causal.logits + causal.attention


def test_experts_cost_what_a_token_uses() -> None:
    spec = find_model("mixtral-8x7b")
    flops = forward_flops_per_token(spec, 4096)
    # Two of eight experts, attention, router: 2 FLOPs a weight.
    layer = 2 * 3 * 4096 * 14336 + 2 * 4096**2 + 2 * 4096 * 1024 + 4096 * 8
    assert flops.matmul == 2 * 32 * layer
    assert flops.logits == 2 * 4096 * 32000


@given(st.integers(1, 700), st.integers(1, 300), st.booleans())
def test_windows_by_brute_force(sequence: int, window: int, chunked: bool) -> None:
    base = find_model("mistral-7b-v0.1")
    spec = base.model_copy(update={"sliding_window": window, "chunked": chunked})
    seen = [
        (i % window + 1 if chunked else min(i + 1, window)) if sequence > window else i + 1
        for i in range(sequence)
    ]
    expected = 4 * 32 * 128 * 32 * sum(seen) / sequence
    flops = forward_flops_per_token(spec, sequence)
    assert flops.attention == pytest.approx(expected)


def test_one_layer_in_six_is_global_in_gemma3() -> None:
    spec = find_model("gemma3-27b")
    assert spec.global_layers == 10  # layers 6, 12, … 60 of 62
    # A token at 100,000 sees 1024 tokens in 52 layers and all of them in 10.
    flops = decode_flops_per_token(spec, 100_000)
    assert flops.attention == 4 * 32 * 128 * (52 * 1024 + 10 * 100_000)


# arXiv:2505.09343, table 1: KV cache a token in bf16.
@pytest.mark.parametrize(
    ("name", "expected"),
    [("deepseek3-671b", 70_272), ("qwen2.5-72b", 327_680), ("llama3.1-405b", 516_096)],
)
def test_kv_bytes_per_token(name: str, expected: int) -> None:
    assert kv_bytes_per_token(find_model(name), 2) == expected


def test_a_window_bounds_the_cache() -> None:
    spec = find_model("mistral-7b-v0.1")
    assert kv_bytes(spec, 1000, 2) == 1000 * kv_bytes_per_token(spec, 2)
    assert kv_bytes(spec, 20_000, 2) == 4096 * 32 * 2 * 8 * 128 * 2
    gemma = find_model("gemma2-9b")
    one_layer = 2 * 8 * 256 * 2
    assert kv_bytes(gemma, 8192, 2) == 21 * 8192 * one_layer + 21 * 4096 * one_layer


def test_latent_attention_decodes_in_absorbed_form() -> None:
    # Each of 128 heads meets 512 + 64 cached values for the score and 512 for the sum, in 61
    # layers.
    flops = decode_flops_per_token(find_model("deepseek3-671b"), 1000)
    assert flops.attention == 2 * 128 * (576 + 512) * 1000 * 61


def test_encoder_decoder_by_hand() -> None:
    spec = find_model("flan-t5-xxl")  # 24 + 24 layers, embed 4096, 64 heads of 64, mlp 10240 gated
    attention, mlp = 4 * 4096**2, 3 * 4096 * 10240
    encoder = encoder_flops_per_token(spec, 512)
    assert encoder.matmul == 2 * 24 * (attention + mlp + 2 * 4096**2)  # and cross keys and values
    assert encoder.attention == 24 * 4 * 64 * 64 * 512
    decoder = forward_flops_per_token(spec, 1, encoder_sequence=512)
    assert decoder.matmul == 2 * 24 * (attention + 2 * 4096**2 + mlp)
    assert decoder.attention == 24 * 4 * 64 * 64 * (1 + 512)
    both = 2 * parameters(spec).matmul
    assert encoder.matmul + decoder.matmul + decoder.logits == both
    assert kv_bytes(spec, 10, 2, encoder_sequence=512) == 24 * 522 * 2 * 4096 * 2


@pytest.mark.parametrize("sequence", [0, -1])
def test_an_empty_sequence_is_refused(sequence: int) -> None:
    for cost in (forward_flops_per_token, decode_flops_per_token, encoder_flops_per_token):
        with pytest.raises(ModelError, match="at least one token"):
            cost(find_model("llama3-8b"), sequence)
