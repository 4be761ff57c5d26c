"""How many parameters a ModelSpec has, part by part; exact, so a published total can check it."""

from __future__ import annotations

from prompts_agent.model.spec import MlaDims, ModelSpec
from prompts_agent.record import Record

__all__ = ["ParameterCount", "parameters"]


class ParameterCount(Record):
    """Numbers of parameters. `*_per_layer` and `expert` are of one layer; the rest of the whole
    model.

    `embedding` is the token table with learned positions, `head` the output projection (0 when it
    is the token table). `active` is what one token uses: everything but the experts it is not sent
    to. `matmul` is the part of `active` that enters a matrix product: without norms, biases and the
    lookup of the token, with the output projection even where it is tied.
    """

    total: int
    active: int
    matmul: int
    embedding: int
    head: int
    attention_per_layer: int
    cross_attention_per_layer: int
    mlp_per_layer: int
    router_per_layer: int
    expert: int
    shared_experts_per_layer: int
    norms: int
    attention: int
    dense_mlp: int
    routers: int
    experts: int
    shared_experts: int


def parameters(spec: ModelSpec) -> ParameterCount:
    """Count every weight, bias and norm of `spec`."""
    stacks = spec.layers + spec.encoder_layers
    attention = _attention(spec)
    cross = attention if spec.encoder_layers else 0
    mlp = _mlp(spec, spec.mlp)
    expert = router = shared = 0
    per_token = 0
    if spec.moe is not None:
        expert = _mlp(spec, spec.moe.mlp)
        router = spec.embed * spec.moe.experts + (spec.moe.experts if spec.moe.router_bias else 0)
        shared = _mlp(spec, spec.moe.shared_mlp) if spec.moe.shared_mlp else 0
        per_token = spec.moe.experts_per_token
    experts = expert * (spec.moe.experts if spec.moe else 0) * spec.moe_layers
    parts = {
        "embedding": spec.embed * (spec.vocab + spec.learned_positions),
        "head": _head(spec),
        "norms": _norms(spec),
        "attention": attention * stacks + cross * spec.layers + _relative_bias(spec),
        "dense_mlp": mlp * (stacks - spec.moe_layers),
        "routers": router * spec.moe_layers,
        "experts": experts,
        "shared_experts": shared * spec.moe_layers,
    }
    total = sum(parts.values())
    return ParameterCount(
        total=total,
        active=total - experts + expert * per_token * spec.moe_layers,
        matmul=matmul_weights(spec),
        attention_per_layer=attention,
        cross_attention_per_layer=cross,
        mlp_per_layer=mlp,
        router_per_layer=router,
        expert=expert,
        shared_experts_per_layer=shared,
        **parts,
    )


def attention_matrices(spec: ModelSpec) -> int:
    """Weights of the projections of one attention block, without biases and norms."""
    if spec.mla is not None:
        return _mla_matrices(spec, spec.mla)
    queries_and_out = 2 * spec.embed * spec.heads * spec.head_dim
    keys_and_values = 2 * spec.embed * spec.kv_heads * spec.head_dim
    return queries_and_out + keys_and_values


def mlp_matrices(spec: ModelSpec, inner: int) -> int:
    """Weights of a feed-forward block of inner dim `inner`: three matrices when gated, else two."""
    return (3 if spec.gated_mlp else 2) * spec.embed * inner


def feed_forward_matrices(spec: ModelSpec) -> int:
    """Feed-forward weights that one token meets on its way through all decoder layers."""
    dense = mlp_matrices(spec, spec.mlp) * (spec.layers - spec.moe_layers)
    if spec.moe is None:
        return dense
    inner = spec.moe.mlp * spec.moe.experts_per_token + spec.moe.shared_mlp
    routed = mlp_matrices(spec, inner) + spec.embed * spec.moe.experts
    return dense + routed * spec.moe_layers


def matmul_weights(spec: ModelSpec) -> int:
    """Active weights in matrix products, both stacks of an encoder-decoder together."""
    attention = attention_matrices(spec)
    blocks = spec.layers * (2 if spec.encoder_layers else 1) + spec.encoder_layers
    encoder_mlp = mlp_matrices(spec, spec.mlp) * spec.encoder_layers
    head = spec.embed * spec.vocab
    return attention * blocks + feed_forward_matrices(spec) + encoder_mlp + head


def _mla_matrices(spec: ModelSpec, mla: MlaDims) -> int:
    queries_out = spec.heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    if mla.q_lora_rank is None:
        queries = spec.embed * queries_out
    else:
        queries = spec.embed * mla.q_lora_rank + mla.q_lora_rank * queries_out
    down = spec.embed * (mla.kv_lora_rank + mla.qk_rope_head_dim)
    up = mla.kv_lora_rank * spec.heads * (mla.qk_nope_head_dim + mla.v_head_dim)
    out = spec.heads * mla.v_head_dim * spec.embed
    return queries + down + up + out


def _attention(spec: ModelSpec) -> int:
    extra = spec.heads if spec.sinks else 0
    if spec.mla is not None:
        # A norm on each latent.
        extra += spec.mla.kv_lora_rank + (spec.mla.q_lora_rank or 0)
    elif spec.qkv_bias:
        extra += (spec.heads + 2 * spec.kv_heads) * spec.head_dim
    if spec.out_bias:
        extra += spec.embed
    if spec.qk_norm:
        extra += 2 * spec.head_dim
    return attention_matrices(spec) + extra


def _mlp(spec: ModelSpec, inner: int) -> int:
    biases = ((2 if spec.gated_mlp else 1) * inner + spec.embed) if spec.mlp_bias else 0
    return mlp_matrices(spec, inner) + biases


def _head(spec: ModelSpec) -> int:
    return (0 if spec.tied_embeddings else spec.embed * spec.vocab) + (
        spec.vocab if spec.head_bias else 0
    )


def _norms(spec: ModelSpec) -> int:
    width = spec.embed * (2 if spec.norm == "layernorm" else 1)
    # An encoder layer has no cross-attention and so one norm less; each stack ends with a norm.
    encoder = spec.encoder_layers * (spec.layer_norms - 1) + 1 if spec.encoder_layers else 0
    return width * (spec.layers * spec.layer_norms + 1 + encoder + int(spec.embedding_norm))


def _relative_bias(spec: ModelSpec) -> int:
    return spec.position_buckets * spec.heads * (2 if spec.encoder_layers else 1)
