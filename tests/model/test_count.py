"""Parameter counts against published checkpoints, and parts worked out by hand."""

from __future__ import annotations

import pytest

from prompts_agent.errors import ModelError
from prompts_agent.model.catalog import find_model, model_names
from prompts_agent.model.count import parameters
from prompts_agent.model.spec import ModelSpec, MoeDims

# Without a published count to the last digit: OPT's paper rounds, UL2's and CodeGen2's cards too.
UNPUBLISHED = {"opt-30b", "opt-66b", "flan-ul2-20b", "codegen2-16b"}


def test_there_are_enough_architectures() -> None:
    assert len(model_names()) >= 40


@pytest.mark.parametrize("name", model_names())
def test_total_is_the_published_one(name: str) -> None:
    spec = find_model(name)
    if name in UNPUBLISHED:
        assert spec.published_parameters is None
        return
    assert spec.published_parameters is not None
    assert parameters(spec).total == pytest.approx(spec.published_parameters, rel=0.005)


# Checkpoints whose tensors were counted by somebody else: these have to match to the last weight.
@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("llama2-7b", 6_738_415_616),
        ("llama2-70b", 68_976_648_192),
        ("llama3.1-405b", 405_853_388_800),
        ("qwen2.5-72b", 72_706_203_648),
        ("qwen3-235b-a22b", 235_093_634_560),
        ("mixtral-8x7b", 46_702_792_704),
        ("gemma2-27b", 27_227_128_320),
        ("deepseek3-671b", 671_026_419_200),
        ("gpt-oss-120b", 116_829_156_672),
        ("gpt-neox-20b", 20_554_567_680),
        ("bloom-176b", 176_247_271_424),
        ("t5-11b", 11_307_321_344),
        ("starcoder-15b", 15_517_456_384),
        ("phi4-14b", 14_659_507_200),
    ],
)
def test_exact_totals(name: str, total: int) -> None:
    assert parameters(find_model(name)).total == total


# Model cards count the token lookup in or out; the number has to be one of the two, to their
# digits.
@pytest.mark.parametrize(
    ("name", "active", "with_lookup"),
    [
        ("mixtral-8x7b", 12.9e9, True),
        ("mixtral-8x22b", 39e9, True),
        ("deepseek2-236b", 21e9, True),
        ("deepseek2-lite-16b", 2.4e9, False),
        ("deepseek3-671b", 37e9, True),
        ("qwen3-30b-a3b", 3.3e9, True),
        ("qwen3-235b-a22b", 22e9, True),
        ("gpt-oss-20b", 3.61e9, False),
        ("gpt-oss-120b", 5.13e9, False),
        ("llama4-scout", 17e9, True),
        ("llama4-maverick", 17e9, True),
    ],
)
def test_active_parameters(name: str, active: float, with_lookup: bool) -> None:
    spec = find_model(name)
    assert spec.published_active_parameters == active
    count = parameters(spec)
    counted = count.active if with_lookup else count.active - count.embedding
    assert counted == pytest.approx(active, rel=0.025)


def test_parts_of_llama2_7b() -> None:
    count = parameters(find_model("llama2-7b"))
    assert count.embedding == count.head == 32000 * 4096
    assert count.attention_per_layer == 4 * 4096**2
    assert count.mlp_per_layer == 3 * 4096 * 11008
    assert count.norms == 65 * 4096
    assert count.active == count.total
    # Everything but the lookup and the norms is in a matrix product.
    assert count.matmul == count.total - count.embedding - count.norms
    assert count.expert == count.router_per_layer == count.experts == 0


def test_parts_of_mixtral() -> None:
    count = parameters(find_model("mixtral-8x7b"))
    assert count.expert == 3 * 4096 * 14336
    assert count.router_per_layer == 4096 * 8
    assert count.experts == 32 * 8 * count.expert
    assert count.dense_mlp == 0
    assert count.total - count.active == 32 * 6 * count.expert


def test_latent_attention_by_hand() -> None:
    # DeepSeek-V3: 7168→1536→128·192 for queries, 7168→512+64 and 512→128·256 for keys and values,
    # 128·128→7168 out; a norm on each latent.
    expected = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    assert parameters(find_model("deepseek3-671b")).attention_per_layer == expected + 1536 + 512


def test_a_tied_table_is_counted_once() -> None:
    tied = parameters(find_model("llama3.2-1b"))
    assert tied.head == 0
    assert tied.matmul == tied.total - tied.norms


def test_layers_with_experts() -> None:
    assert find_model("deepseek3-671b").moe_layers == 58  # the first 3 of 61 are dense
    assert find_model("llama4-maverick").moe_layers == 24  # every second of 48
    assert find_model("llama3-8b").moe_layers == 0


def spec_with(**fields: object) -> ModelSpec:
    base = find_model("llama2-7b").model_dump()
    return ModelSpec.model_validate({**base, **fields})


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"kv_heads": 5}, "32 heads with 5 kv_heads"),
        ({"moe": MoeDims(experts=4, experts_per_token=5, mlp=8)}, "5 experts a token"),
        ({"published_parameters": 1, "published_source": None}, "published_parameters"),
    ],
)
def test_dims_that_contradict_are_refused(fields: dict[str, object], value: str) -> None:
    with pytest.raises(ModelError) as error:
        spec_with(**fields)
    assert value in error.value.value


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("llama2-7b", "mha"),
        ("llama3-8b", "gqa"),
        ("starcoder-15b", "mqa"),
        ("deepseek3-671b", "mla"),
    ],
)
def test_kinds_of_attention(name: str, kind: str) -> None:
    assert find_model(name).attention == kind
