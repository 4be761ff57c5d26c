from __future__ import annotations

from typing import Any

import pytest

from prompts_agent.layout.layout import Layout, PipelineSchedule
from prompts_agent.layout.legality import RULES, check, legal
from prompts_agent.layout.mesh import Axis, Mesh
from prompts_agent.layout.rule import Check
from prompts_agent.layout.table import LayoutTable
from prompts_agent.model.spec import MlaDims, ModelSpec, MoeDims

from .conftest import MakeSpace


def broken(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {c.rule: c for c in checks if not c.ok}


def forbidden(checks: tuple[Check, ...]) -> set[str]:
    return {name for name, c in broken(checks).items() if c.forbids}


def flagged(checks: tuple[Check, ...]) -> set[str]:
    return {name for name, c in broken(checks).items() if not c.forbids}


def test_a_good_layout_breaks_nothing(make_space: MakeSpace) -> None:
    space = make_space("v5e:16x16")
    layout = Layout(mesh=Mesh.of(fsdp=64, tensor=4), microbatch=4)
    assert not broken(check(layout, space))
    assert [c.rule for c in check(layout, space)] == [rule.name for rule in RULES]


def test_the_product_is_spelled_out(make_space: MakeSpace) -> None:
    found = check(Layout(mesh=Mesh.of(data=2, fsdp=8, tensor=2)), make_space("v5e:4x4"))
    message = broken(found)["devices"]
    assert message.text == "data 2 × fsdp 8 × tensor 2 = 32 devices; v5e:4x4 has 16"
    assert message.cure == "Change axes until their product is 16."


def test_domains_must_be_filled(make_space: MakeSpace) -> None:
    space = make_space("2*v5e:4x4", global_batch=32)
    inside = Layout(mesh=Mesh.of(data=2, fsdp=16))
    message = broken(check(inside, space))["domains"]
    assert "= 32 of 16 devices" in message.text
    assert "data ici 1 × dcn 2" in message.cure
    split = Mesh.model_validate({"data": {"dcn": 2}, "fsdp": 16})
    assert not broken(check(Layout(mesh=split), space))


# Llama 3 8B's dims on 16 devices, global batch 256, sequence 8192; one rule broken at a time.
CASES: list[tuple[str, dict[str, int], dict[str, Any], dict[str, Any], str]] = [
    ("v5e:4x4", {"tensor": 16}, {"microbatch": 256}, {"sequence": 8192}, ""),
    ("v5e:4x4", {"expert": 16}, {"microbatch": 16}, {}, "experts"),
    ("v5e:4x4", {"fsdp": 16}, {"microbatch": 8}, {}, "batch"),
    ("v5e:4x4", {"context": 16}, {"microbatch": 256}, {"sequence": 1000}, "context"),
    (
        "v5e:4x4",
        {"fsdp": 16},
        {"microbatch": 16, "sequence_parallel": True},
        {},
        "sequence_parallel",
    ),
    ("v5e:4x4", {"fsdp": 16}, {"microbatch": 16, "attention_data": 2}, {}, "attention_data"),
    ("v5e:4x4", {"fsdp": 16}, {"microbatch": 16, "batch_limit": 8}, {}, "serving_knobs"),
    ("v5e:4x4", {"fsdp": 16}, {"microbatch": 16, "virtual_stages": 2}, {}, "interleaved"),
    ("v5e:4x4", {"fsdp": 16}, {"microbatch": 16}, {"axes": (Axis.DATA,)}, "constraints"),
    ("v5e:4x4", {"fsdp": 16}, {"microbatch": 16}, {"max_degree": {Axis.FSDP: 8}}, "constraints"),
    ("v5e:4x4", {"fsdp": 16}, {"microbatch": 16}, {"microbatches": (1,)}, "knob_constraints"),
    ("v5e:4x4", {"fsdp": 16}, {"microbatch": 16}, {"remat": ("none",)}, "knob_constraints"),
    (
        "v5e:4x4",
        {"pipeline": 16},
        {"microbatch": 32, "gradient_accumulation": 8},
        {},
        "microbatches_in_flight",
    ),
]


@pytest.mark.parametrize(("hardware", "mesh", "knobs", "settings", "rule"), CASES)
def test_one_rule_at_a_time(
    make_space: MakeSpace,
    hardware: str,
    mesh: dict[str, int],
    knobs: dict[str, Any],
    settings: dict[str, Any],
    rule: str,
) -> None:
    layout = Layout(mesh=Mesh.of(**mesh), **knobs)
    space = make_space(hardware, **settings)
    found = check(layout, space)
    assert forbidden(found) == ({rule} if rule else set())
    assert legal(LayoutTable.of([layout]), space).tolist() == [not rule]
    assert all(c.cure == "" if c.ok else c.cure.endswith(".") for c in found)


def test_shards_of_the_batch_are_equal(make_space: MakeSpace) -> None:
    found = check(Layout(mesh=Mesh.of(data=16)), make_space("v5e:4x4", global_batch=24))
    assert forbidden(found) == {"batch_shards", "batch"}
    assert broken(found)["batch_shards"].text == "24 sequences ÷ data 16 leaves 8"


def test_heads_and_kv_heads(make_space: MakeSpace, dense: ModelSpec) -> None:
    # 24 heads, 8 KV heads over tensor 16 on 16 chips: 24 % 16 = 8.
    model = dense.model_copy(update={"heads": 24, "head_dim": 128})
    found = check(Layout(mesh=Mesh.of(tensor=16), microbatch=256), make_space("v5e:4x4", model))
    assert broken(found)["heads"].text == "24 heads ÷ tensor 16 leaves 8"
    assert broken(found)["heads"].cure == (
        "Choose tensor among the divisors of 24: 1, 2, 3, 4, 6, 8, 12, 24."
    )
    # 12 heads, 3 KV heads: tensor 4 divides the heads, but no KV head lies whole on a device.
    model = dense.model_copy(update={"heads": 12, "kv_heads": 3})
    found = check(Layout(mesh=Mesh.of(tensor=4), microbatch=256), make_space("v5e:2x2", model))
    assert forbidden(found) == {"kv_heads"}


def test_repeated_kv_heads_are_legal_but_flagged(make_space: MakeSpace) -> None:
    found = check(Layout(mesh=Mesh.of(tensor=16), microbatch=256), make_space("v5e:4x4"))
    assert flagged(found) == {"kv_repeated"}
    assert broken(found)["kv_repeated"].text == "each of 8 KV heads is held by 2 of 16 tensor ranks"


def test_latent_attention_has_no_kv_heads_to_cut(make_space: MakeSpace, dense: ModelSpec) -> None:
    mla = MlaDims(
        q_lora_rank=None,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
    )
    model = dense.model_copy(update={"mla": mla, "heads": 48, "kv_heads": 24})
    found = check(Layout(mesh=Mesh.of(tensor=16), microbatch=256), make_space("v5e:4x4", model))
    assert not forbidden(found)
    assert flagged(found) == {"kv_repeated"}


def test_vocab_is_padded_not_refused(make_space: MakeSpace, dense: ModelSpec) -> None:
    gpt2 = dense.model_copy(update={"vocab": 50257})
    found = check(Layout(mesh=Mesh.of(tensor=4), microbatch=256), make_space("v5e:2x2", gpt2))
    assert not forbidden(found)
    assert "50260" in broken(found)["vocab"].cure


def test_uneven_embed_is_refused_by_jax_and_padded_by_fsdp(
    make_space: MakeSpace, dense: ModelSpec
) -> None:
    # 4097 = 17 × 241 is odd.
    model = dense.model_copy(update={"embed": 4097})
    layout = Layout(mesh=Mesh.of(fsdp=8), microbatch=32)
    assert forbidden(check(layout, make_space("v5e:2x4", model))) == {"embed"}
    on_gpus = check(layout, make_space("h100:1x8", model))
    assert not forbidden(on_gpus)
    assert flagged(on_gpus) == {"embed_uneven"}


def test_pipeline_and_its_schedule(make_space: MakeSpace) -> None:
    space = make_space("v5e:2x2", global_batch=8)

    def rules(**knobs: Any) -> set[str]:
        return forbidden(check(Layout(mesh=Mesh.of(pipeline=4), **knobs), space))

    assert rules(gradient_accumulation=8) == set()
    chunked = {"schedule": PipelineSchedule.INTERLEAVED, "gradient_accumulation": 8}
    assert rules(virtual_stages=8, **chunked) == set()
    # 32 layers % (4 × 3) = 8.
    assert rules(virtual_stages=3, **chunked) == {"virtual_stages"}
    assert rules(virtual_stages=1, **chunked) == {"interleaved"}
    # Six microbatches are no whole rounds over four stages.
    space = make_space("v5e:2x2", global_batch=6)
    assert rules(gradient_accumulation=6) == set()
    assert rules(virtual_stages=2, **chunked | {"gradient_accumulation": 6}) == {
        "microbatches_in_flight"
    }


def test_layers_over_stages(make_space: MakeSpace, dense: ModelSpec) -> None:
    # 61 layers, as DeepSeek-V3, are prime.
    model = dense.model_copy(update={"layers": 61})
    space = make_space("v5e:2x2", model)
    layout = Layout(mesh=Mesh.of(pipeline=4), gradient_accumulation=256)
    assert forbidden(check(layout, space)) == {"layers", "virtual_stages"}


@pytest.mark.parametrize(
    ("pipeline", "chunks", "legal"),
    [
        # 126 ÷ 16: 8 a stage, 6 in the last.
        (16, 1, True),
        # 64 parts of 2 leave the last none; with the embedding and the loss they are 128 ÷ 64.
        (16, 4, True),
        # 128 parts of 1, the first and the last without a layer.
        (16, 8, True),
        # 63 parts of 2 come out even.
        (9, 7, True),
        # 72 parts of 2: 126 is none, and nor is 128.
        (9, 8, False),
    ],
)
def test_the_embedding_and_the_loss_may_count_as_layers(
    make_space: MakeSpace, dense: ModelSpec, pipeline: int, chunks: int, legal: bool
) -> None:
    model = dense.model_copy(update={"layers": 126})
    space = make_space("h100:18x8", model, uneven_stages=True)
    layout = Layout(
        mesh=Mesh.of(pipeline=pipeline, data=144 // pipeline),
        gradient_accumulation=pipeline,
        schedule=PipelineSchedule.INTERLEAVED if chunks > 1 else PipelineSchedule.ONE_F_ONE_B,
        virtual_stages=chunks,
    )
    found = forbidden(check(layout, space))
    assert bool(found & {"layers", "virtual_stages"}) is not legal


def test_experts_as_a_factor_and_as_a_division(make_space: MakeSpace, moe: ModelSpec) -> None:
    factor = Layout(mesh=Mesh.of(fsdp=2, expert=8), microbatch=16)
    assert not broken(check(factor, make_space("v5e:4x4", moe)))
    # Megatron: tensor 2 × data 8 = 16 devices; expert 8 divides them.
    divided = Layout(mesh=Mesh.of(data=8, tensor=2, expert=8), expert_divides=True, microbatch=32)
    space = make_space("v5e:4x4", moe, expert_divides=True)
    assert divided.devices == 16
    assert not broken(check(divided, space))
    wrong = Layout(mesh=Mesh.of(pipeline=4, data=4, expert=8), expert_divides=True)
    assert "expert_divides" in forbidden(check(wrong, space))


def test_expert_widths_where_expert_divides(make_space: MakeSpace, dense: ModelSpec) -> None:
    # Expert 8 lies over tensor 8 and leaves each expert whole, so its width of 12 need not divide.
    moe = MoeDims(experts=8, experts_per_token=2, mlp=12)
    model = dense.model_copy(update={"moe": moe})
    layout = Layout(mesh=Mesh.of(tensor=8, expert=8), expert_divides=True, microbatch=256)
    assert not forbidden(check(layout, make_space("v5e:2x4", model, expert_divides=True)))
    layout = Layout(mesh=Mesh.of(tensor=8), microbatch=256)
    assert forbidden(check(layout, make_space("v5e:2x4", model))) == {"mlp"}


def test_serving(make_space: MakeSpace) -> None:
    space = make_space("v5e:4x4", training=False, global_batch=64)

    def found(mesh: dict[str, int], **knobs: Any) -> tuple[Check, ...]:
        return check(Layout(mesh=Mesh.of(**mesh), **knobs), space)

    assert not forbidden(found({"data": 2, "tensor": 8}))
    assert forbidden(found({"fsdp": 2, "tensor": 8})) == {"serving_axes"}
    assert forbidden(found({"tensor": 16}, gradient_accumulation=2)) == {"serving_knobs"}
    # attention_data 2 over tensor 16 leaves heads over 8: no KV head is repeated.
    assert "kv_repeated" in flagged(found({"tensor": 16}))
    assert not broken(found({"tensor": 16}, attention_data=2))
    assert forbidden(found({"tensor": 16}, attention_data=3)) == {"attention_data"} | (
        # 16 // 3 = 5 ranks a group divide neither 32 heads nor 8 KV heads.
        {"heads", "kv_heads"}
    )


def test_more_groups_than_requests(make_space: MakeSpace) -> None:
    space = make_space("v5e:4x4", training=False, global_batch=1)
    found = check(Layout(mesh=Mesh.of(data=16)), space)
    assert forbidden(found) == {"batch_shards"}


def test_far_axes_are_flagged(make_space: MakeSpace) -> None:
    space = make_space("2*v5e:2x2", global_batch=4)
    mesh = Mesh.model_validate({"data": 4, "tensor": {"ici": 1, "dcn": 2}})
    found = check(Layout(mesh=mesh), space)
    assert not forbidden(found)
    assert "tensor crosses domains (dcn 2)" in broken(found)["near_axes"].text
    space = make_space("2*v5e:2x2", global_batch=4, dcn_axes=(Axis.DATA,))
    assert forbidden(check(Layout(mesh=mesh), space)) == {"constraints"}


def test_rank_order(make_space: MakeSpace) -> None:
    # Two nodes of 4: tensor 2 innermost, so data 4 has 2 inside. Only jax can put tensor across.
    near = Mesh.model_validate({"data": {"ici": 2, "dcn": 2}, "tensor": 2})
    far = Mesh.model_validate({"data": 4, "tensor": {"ici": 1, "dcn": 2}})
    space = make_space("h100:2x4", free_split=False, global_batch=4)
    assert not forbidden(check(Layout(mesh=near), space))
    assert forbidden(check(Layout(mesh=far), space)) == {"rank_order"}
    assert not forbidden(check(Layout(mesh=far), make_space("h100:2x4", global_batch=4)))


def said(checks: tuple[Check, ...]) -> list[str]:
    """What a person reads of a layout that keeps every rule."""
    assert all(c.ok for c in checks)
    return [c.text for c in checks if not c.quiet]


def test_what_holds_is_said_once_and_only_where_it_says_something(make_space: MakeSpace) -> None:
    # Llama 3 8B: 32 heads, 8 KV heads, mlp 14336, vocab 128256, embed 4096; 256 × 8192 tokens.
    layout = Layout(mesh=Mesh.of(fsdp=64, tensor=4), microbatch=2, gradient_accumulation=2)
    assert said(check(layout, make_space("v5e:16x16"))) == [
        "fsdp 64 × tensor 4 = 256 devices; v5e:16x16 has 256",
        "32 heads ÷ tensor 4 = 8",
        "8 KV heads ÷ tensor 4 = 2",
        "mlp 14336 ÷ tensor 4 = 3584",
        "vocab 128256 ÷ tensor 4 = 32064",
        "embed 4096 ÷ fsdp 64 = 64",
        "fsdp 64 × microbatch 2 × gradient_accumulation 2 = 256 sequences; the global batch is 256",
    ]


def test_one_device_has_no_product_to_spell(make_space: MakeSpace) -> None:
    space = make_space("v5e:1x1", global_batch=1, sequence=128)
    assert said(check(Layout(mesh=Mesh.of()), space)) == [
        "one device; v5e:1x1 has 1",
        "1 = 1 sequences; the global batch is 1",
    ]


def test_the_sequence_is_cut_in_balanced_chunks_and_over_tensor(make_space: MakeSpace) -> None:
    layout = Layout(
        mesh=Mesh.of(fsdp=2, context=2, tensor=4), microbatch=128, sequence_parallel=True
    )
    assert said(check(layout, make_space("v5e:4x4")))[-2:] == [
        "8192 tokens ÷ (context 2 × 2 chunks, which balance a causal mask) = 2048",
        "4096 tokens of a device ÷ tensor 4 = 1024: sequence_parallel",
    ]


def test_a_restriction_is_said_where_there_is_one(make_space: MakeSpace) -> None:
    layout = Layout(mesh=Mesh.of(fsdp=16), microbatch=16)
    texts = said(
        check(layout, make_space("v5e:4x4", max_degree={Axis.FSDP: 16}, microbatches=(8, 16)))
    )
    assert "every axis is within the workload's constraints" in texts
    assert "microbatch 16 of 8, 16" in texts


def test_domains_and_far_axes_are_said_on_several_domains(make_space: MakeSpace) -> None:
    space = make_space("2*v5e:2x2", global_batch=4)
    mesh = Mesh.model_validate({"data": {"ici": 1, "dcn": 2}, "fsdp": 2, "tensor": 2})
    assert said(check(Layout(mesh=mesh), space))[1:3] == [
        "inside a fast domain fsdp 2 × tensor 2 = 4 of 4 devices; "
        "across domains data 2 = 2 of 2 domains",
        "tensor 2 inside one domain",
    ]
