"""Architectures told from hand-made lists of weight shapes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.errors import ModelError
from prompts_agent.model.catalog import find_model
from prompts_agent.model.from_shapes import InferredModel, ParameterShape, infer_model
from prompts_agent.model.shape_names import Role, role_of, tokens_of

Shapes = dict[str, tuple[int, ...]]


def infer(
    shapes: Shapes, dtype: str = "bf16", hint: str | None = None, extra: Shapes | None = None
) -> InferredModel:
    listed = [ParameterShape(name=n, dtype=dtype, global_shape=s) for n, s in shapes.items()]
    for name, shape in (extra or {}).items():
        listed.append(ParameterShape(name=name, dtype="s32", global_shape=shape))
    return infer_model(listed, hint=find_model(hint) if hint else None)


SMALL_JOB: Shapes = {
    "params['emb']": (1024, 256),
    "params['layers']['qkv']": (4, 256, 768),
    "params['layers']['o']": (4, 256, 256),
    "params['layers']['w1']": (4, 256, 1024),
    "params['layers']['w2']": (4, 1024, 256),
}


def small_job_is_told(model: InferredModel) -> None:
    spec = model.spec
    assert (spec.layers, spec.embed, spec.mlp, spec.vocab) == (4, 256, 1024, 1024)
    assert spec.tied_embeddings
    assert not spec.gated_mlp
    assert spec.attention == "mha"
    assert spec.heads * spec.head_dim == 256


def test_the_small_job() -> None:
    model = infer(SMALL_JOB)
    small_job_is_told(model)
    assert any("head_dim 64" in assumption for assumption in model.assumptions)


def test_dictionary_of_plain_words() -> None:
    # 8 heads and 2 KV heads of 64, no context around the words, and "value" is a weight.
    model = infer(
        {
            "weights['embedding']": (8192, 512),
            "weights['query']": (4, 512, 512),
            "weights['key']": (4, 512, 128),
            "weights['value']": (4, 512, 128),
            "weights['out']": (4, 512, 512),
            "weights['gate']": (4, 512, 1408),
            "weights['up']": (4, 512, 1408),
            "weights['down']": (4, 1408, 512),
            "weights['lm_head']": (512, 8192),
        }
    )
    spec = model.spec
    assert (spec.layers, spec.embed, spec.mlp, spec.vocab) == (4, 512, 1408, 8192)
    assert (spec.heads, spec.kv_heads, spec.head_dim) == (8, 2, 64)
    assert spec.gated_mlp
    assert not spec.tied_embeddings


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("weights['value']", Role.V),
        ("params.layers.attn.value.kernel", Role.V),
        ("state.layers.q_proj.kernel.value", Role.Q),
        ("state.layers.mlp.wo.value", Role.OUT),
        ("model.layers.3.self_attn.o_proj.weight", Role.O),
        ("model.layers.3.mlp.c_proj.weight", Role.OUT),
        ("transformer.h.3.attn.c_proj.weight", Role.O),
        ("decoder.layers.self_attention.linear_qkv.weight", Role.QKV),
        ("params['wpe']['embedding']", Role.POSITIONS),
        ("params['wte']['embedding']", Role.EMBEDDING),
        ("params['block_sparse_moe']['gate']['kernel']", Role.ROUTER),
        ("Arg_0.1", None),
        ("", None),
    ],
)
def test_roles(name: str, role: Role | None) -> None:
    assert role_of(tokens_of(name)) is role


def test_plain_names_and_inputs() -> None:
    plain = {name.split("'")[-2]: shape for name, shape in SMALL_JOB.items()}
    small_job_is_told(infer(plain, extra={"tokens": (8, 128), "step": ()}))


@pytest.mark.parametrize("prefix", ["opt_state[0].{}", "opt['{}']", "{}", "state.{}"])
@pytest.mark.parametrize("moments", [("mu", "nu"), ("m", "v")])
def test_optimizer_state_is_left_out(prefix: str, moments: tuple[str, str]) -> None:
    shapes = dict(SMALL_JOB)
    for moment in moments:
        path = prefix.format(moment)
        shapes |= {name.replace("params", path): shape for name, shape in SMALL_JOB.items()}
    small_job_is_told(infer(shapes))


def test_three_equal_arguments_are_one_model() -> None:
    shapes = {
        name.replace("params", f"args[{argument}]"): shape
        for argument in range(3)
        for name, shape in SMALL_JOB.items()
    }
    model = infer(shapes)
    small_job_is_told(model)
    assert any("3 times" in assumption for assumption in model.assumptions)


@pytest.mark.parametrize("copies", [1, 3])
def test_unnamed_shapes(copies: int) -> None:
    listed = [
        ParameterShape(name="", dtype="f32", global_shape=shape)
        for shape in SMALL_JOB.values()
        for _ in range(copies)
    ]
    small_job_is_told(infer_model(listed))


def llama_like(layer: str, stack: tuple[int, ...], *, untied: bool = True) -> Shapes:
    """Llama-3-8B: embed 4096, 32 heads and 8 KV heads of 128, mlp 14336, vocab 128256."""
    shapes: Shapes = {
        f"{layer}.attention.wq": (*stack, 4096, 4096),
        f"{layer}.attention.wk": (*stack, 4096, 1024),
        f"{layer}.attention.wv": (*stack, 4096, 1024),
        f"{layer}.attention.wo": (*stack, 4096, 4096),
        f"{layer}.feed_forward.w1": (*stack, 4096, 14336),
        f"{layer}.feed_forward.w3": (*stack, 4096, 14336),
        f"{layer}.feed_forward.w2": (*stack, 14336, 4096),
        f"{layer}.attention_norm.scale": (*stack, 4096),
    }
    if untied:
        shapes |= {"tok_embeddings": (128256, 4096), "output": (4096, 128256)}
    return shapes


def llama_is_told(model: InferredModel) -> None:
    spec = model.spec
    assert (spec.layers, spec.embed, spec.mlp, spec.vocab) == (32, 4096, 14336, 128256)
    assert (spec.heads, spec.kv_heads, spec.head_dim) == (32, 8, 128)
    assert spec.gated_mlp
    assert not spec.tied_embeddings


def test_llama_stacked() -> None:
    llama_is_told(infer(llama_like("params.layers", (32,))))


def test_llama_layer_by_layer() -> None:
    shapes: Shapes = {}
    for index in range(32):
        shapes |= llama_like(f"model.layers.{index}", (), untied=index == 0)
    llama_is_told(infer(shapes))


def test_llama_as_flax_modules() -> None:
    shapes: Shapes = {}
    for index in range(32):
        shapes |= llama_like(f"params/layers_{index}", (), untied=index == 0)
    llama_is_told(infer(shapes))


def test_llama_in_torch_orientation_without_names() -> None:
    layer = [(4096, 4096), (1024, 4096), (1024, 4096), (4096, 4096)]
    layer += [(14336, 4096), (14336, 4096), (4096, 14336)]
    shapes = [(128256, 4096), (128256, 4096), *(layer * 32)]
    listed = [ParameterShape(name="", dtype="bfloat16", global_shape=shape) for shape in shapes]
    llama_is_told(infer_model(listed))


def maxtext_like() -> Shapes:
    """MaxText scans over the second dim and keeps heads and head_dim apart."""
    path = "state.params['params']['decoder']['layers']"
    return {
        "state.params['params']['token_embedder']['embedding']": (128256, 4096),
        "state.params['params']['decoder']['logits_dense']['kernel']": (4096, 128256),
        f"{path}['self_attention']['query']['kernel']": (4096, 32, 32, 128),
        f"{path}['self_attention']['key']['kernel']": (4096, 32, 8, 128),
        f"{path}['self_attention']['value']['kernel']": (4096, 32, 8, 128),
        f"{path}['self_attention']['out']['kernel']": (32, 32, 128, 4096),
        f"{path}['mlp']['wi_0']['kernel']": (4096, 32, 14336),
        f"{path}['mlp']['wi_1']['kernel']": (4096, 32, 14336),
        f"{path}['mlp']['wo']['kernel']": (14336, 32, 4096),
        f"{path}['pre_self_attention_layer_norm']['scale']": (4096, 32),
    }


def test_layers_in_the_second_dim() -> None:
    model = infer(maxtext_like())
    llama_is_told(model)
    # The kernels have a dim of their own for head_dim: nothing had to be assumed.
    assert not any("head_dim" in assumption for assumption in model.assumptions)


def test_fused_projections() -> None:
    shapes: Shapes = {"model.embed_tokens.weight": (128256, 4096), "lm_head.weight": (128256, 4096)}
    for index in range(32):
        layer = f"model.layers.{index}"
        shapes |= {
            f"{layer}.self_attn.qkv_proj.weight": (4096 + 2 * 1024, 4096),
            f"{layer}.self_attn.o_proj.weight": (4096, 4096),
            f"{layer}.mlp.gate_up_proj.weight": (2 * 14336, 4096),
            f"{layer}.mlp.down_proj.weight": (4096, 14336),
            f"{layer}.input_layernorm.weight": (4096,),
        }
    llama_is_told(infer(shapes))


def test_head_dim_from_the_norm_of_queries() -> None:
    # Qwen3-0.6B: 16 heads of 128 on an embed of 1024.
    layer = "params.layers"
    model = infer(
        {
            "params.embed_tokens": (151936, 1024),
            f"{layer}.attn.q_proj": (28, 1024, 2048),
            f"{layer}.attn.k_proj": (28, 1024, 1024),
            f"{layer}.attn.v_proj": (28, 1024, 1024),
            f"{layer}.attn.o_proj": (28, 2048, 1024),
            f"{layer}.attn.q_norm": (28, 128),
            f"{layer}.attn.k_norm": (28, 128),
            f"{layer}.mlp.gate_proj": (28, 1024, 3072),
            f"{layer}.mlp.up_proj": (28, 1024, 3072),
            f"{layer}.mlp.down_proj": (28, 3072, 1024),
        }
    )
    spec = model.spec
    assert (spec.heads, spec.kv_heads, spec.head_dim) == (16, 8, 128)
    assert spec.qk_norm
    assert spec.tied_embeddings


def mixtral_like() -> Shapes:
    layer = "params['layers']"
    return {
        "params['embed']": (32000, 4096),
        "params['lm_head']": (4096, 32000),
        f"{layer}['attn']['q']": (32, 4096, 4096),
        f"{layer}['attn']['k']": (32, 4096, 1024),
        f"{layer}['attn']['v']": (32, 4096, 1024),
        f"{layer}['attn']['o']": (32, 4096, 4096),
        f"{layer}['moe']['gate']['kernel']": (32, 4096, 8),
        f"{layer}['moe']['wi_0']": (32, 8, 4096, 14336),
        f"{layer}['moe']['wi_1']": (32, 8, 4096, 14336),
        f"{layer}['moe']['wo']": (32, 8, 14336, 4096),
    }


def test_experts_stacked() -> None:
    model = infer(mixtral_like())
    spec = model.spec
    assert spec.moe is not None
    assert (spec.moe.experts, spec.moe.mlp, spec.gated_mlp) == (8, 14336, True)
    assert any("2 experts a token by convention" in text for text in model.assumptions)


def test_experts_one_by_one() -> None:
    shapes: Shapes = {"model.embed_tokens.weight": (1000, 64), "lm_head.weight": (1000, 64)}
    for index in range(3):
        layer = f"model.layers.{index}"
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            shapes[f"{layer}.self_attn.{name}.weight"] = (64, 64)
        shapes[f"{layer}.mlp.gate.weight"] = (4, 64)
        for expert in range(4):
            for name in ("gate_proj", "up_proj"):
                shapes[f"{layer}.mlp.experts.{expert}.{name}.weight"] = (96, 64)
            shapes[f"{layer}.mlp.experts.{expert}.down_proj.weight"] = (64, 96)
    spec = infer(shapes).spec
    assert spec.moe is not None
    assert (spec.layers, spec.moe.experts, spec.moe.mlp, spec.gated_mlp) == (3, 4, 96, True)


def test_a_hint_that_fits_fills_the_gaps() -> None:
    model = infer(mixtral_like(), hint="mixtral-8x7b")
    assert model.spec.name == "mixtral-8x7b"
    assert model.spec.max_sequence == 32768
    assert any("as in mixtral-8x7b" in text for text in model.assumptions)


def test_a_hint_that_does_not_fit_is_set_aside() -> None:
    model = infer(SMALL_JOB, hint="llama3-8b")
    small_job_is_told(model)
    assert any(text.startswith("not llama3-8b: layers 4 for 32") for text in model.assumptions)


@pytest.mark.parametrize(
    "shapes",
    [
        {},
        {"x": (8, 8)},
        {"conv1": (7, 7, 3, 64), "conv2": (3, 3, 64, 128), "fc": (2048, 1000)},
        {"w": (16, 128, 256), "u": (16, 256, 128)},  # no attention
        {name: shape for name, shape in SMALL_JOB.items() if "emb" not in name},
        {**SMALL_JOB, "params['layers']['adapter']": (4, 256, 5000)},  # 5M not accounted for
        {"model.layers.0.self_attn.kv_a_proj_with_mqa.weight": (576, 2048)},
        {"encoder.layers.0.q": (64, 64), "decoder.layers.0.q": (64, 64)},
    ],
)
def test_what_cannot_be_told_is_refused(shapes: Shapes) -> None:
    with pytest.raises(ModelError) as error:
        infer(shapes)
    assert "config.json" in error.value.cure


@given(
    layers=st.integers(2, 100),
    heads=st.integers(1, 32),
    head_dim=st.sampled_from([64, 128]),
    mlp=st.integers(1, 64).map(lambda n: 8 * n),
    vocab=st.integers(5000, 300000),
    gated=st.booleans(),
)
def test_stacked_shapes_round_trip(
    layers: int, heads: int, head_dim: int, mlp: int, vocab: int, gated: bool
) -> None:
    embed = heads * head_dim
    shapes: Shapes = {
        "embed": (vocab, embed),
        "layers.wq": (layers, embed, heads, head_dim),
        "layers.wk": (layers, embed, heads, head_dim),
        "layers.wv": (layers, embed, heads, head_dim),
        "layers.attn.wo": (layers, heads, head_dim, embed),
        "layers.w1": (layers, embed, mlp),
        "layers.w2": (layers, mlp, embed),
    }
    if gated:
        shapes["layers.w3"] = (layers, embed, mlp)
    spec = infer(shapes).spec
    assert (spec.layers, spec.embed, spec.heads, spec.head_dim) == (layers, embed, heads, head_dim)
    assert (spec.mlp, spec.vocab, spec.gated_mlp) == (mlp, vocab, gated)


NAMES = [
    "",
    "emb",
    "qkv",
    "o",
    "wq",
    "wk",
    "wv",
    "w1",
    "w2",
    "w3",
    "gate_up",
    "moe.wi",
    "moe.router",
    "layers.0.q",
    "layers.1.q",
    "layers.0.mlp.wo",
    "norm.scale",
    "lm_head",
    "layers_3.kv",
]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(NAMES),
            st.lists(st.sampled_from([0, 1, 2, 3, 4, 8, 16, 24, 48]), max_size=4),
        ),
        max_size=20,
    )
)
def test_any_shapes_are_told_or_refused(listed: list[tuple[str, list[int]]]) -> None:
    shapes = [
        ParameterShape(name=name, dtype="f32", global_shape=tuple(shape)) for name, shape in listed
    ]
    try:
        model = infer_model(shapes)
    except ModelError:
        return
    assert model.spec.layers >= 1
