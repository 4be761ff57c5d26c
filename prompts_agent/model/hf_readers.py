"""One reader a Hugging Face model_type: config keys → fields of ModelSpec.

A key that a config.json leaves out has the default of its transformers configuration class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prompts_agent.model.hf_values import HfValues
from prompts_agent.model.spec import MlaDims, MoeDims

__all__ = ["READERS"]

Fields = dict[str, Any]


def _decoder(values: HfValues, *, tied: bool) -> Fields:
    """The keys that decoders of Llama's line share; `tied` is the default of the class."""
    heads = values.size("num_attention_heads")
    embed = values.size("hidden_size")
    head_dim = values.optional_size("head_dim")
    if head_dim is None and embed % heads:
        values.refuse(
            "hidden_size",
            f"without head_dim, {heads} heads have to divide it",
            "Correct num_attention_heads or add head_dim.",
        )
    return {
        "layers": values.size("num_hidden_layers"),
        "embed": embed,
        "heads": heads,
        "kv_heads": values.size("num_key_value_heads", default=heads),
        "head_dim": head_dim or embed // heads,
        "mlp": values.size("intermediate_size"),
        "gated_mlp": True,
        "vocab": values.size("vocab_size"),
        "tied_embeddings": values.flag("tie_word_embeddings", default=tied),
        "max_sequence": values.optional_size("max_position_embeddings"),
    }


def _global_every(values: HfValues, default: int) -> int | None:
    """The period of full attention in `layer_types`; None where no layer has it."""
    types = values.items("layer_types")
    if not types:
        return default
    whole = [index for index, kind in enumerate(types) if kind == "full_attention"]
    if not whole:
        return None
    period = whole[0] + 1
    if whole != list(range(period - 1, len(types), period)):
        values.refuse(
            "layer_types",
            "full attention does not come back every n layers",
            "Write the dims into the workload file.",
        )
    return period


def _llama(values: HfValues) -> Fields:
    bias = values.flag("attention_bias")
    mlp_bias = values.flag("mlp_bias")
    fields = _decoder(values, tied=False)
    return {**fields, "qkv_bias": bias, "out_bias": bias, "mlp_bias": mlp_bias}


def _mistral(values: HfValues) -> Fields:
    fields = _decoder(values, tied=False)
    return {**fields, "sliding_window": values.optional_size("sliding_window")}


def _mixtral(values: HfValues) -> Fields:
    fields = _mistral(values)
    experts = values.size("num_local_experts", default=8)
    per_token = values.size("num_experts_per_tok", default=2)
    moe = MoeDims(experts=experts, experts_per_token=per_token, mlp=fields["mlp"])
    return {**fields, "moe": moe}


def _phi3(values: HfValues) -> Fields:
    fields = _mistral(values)
    limit, window = fields["max_sequence"], fields["sliding_window"]
    # Phi-4-mini states a window beyond its longest sequence, which is no window.
    if limit is not None and window is not None and window >= limit:
        fields["sliding_window"] = None
    return fields


def _no_window(values: HfValues) -> None:
    """Qwen's configs carry a window that is switched off; one that is on is refused."""
    if values.flag("use_sliding_window"):
        values.refuse(
            "use_sliding_window",
            "a window from layer max_window_layers on cannot be written as a period",
            "Set it to false, or write the dims into the workload file.",
        )


def _qwen2(values: HfValues) -> Fields:
    _no_window(values)
    return {**_decoder(values, tied=False), "qkv_bias": True}


def _qwen3(values: HfValues) -> Fields:
    _no_window(values)
    bias = values.flag("attention_bias")
    fields = _decoder(values, tied=False)
    return {**fields, "qk_norm": True, "qkv_bias": bias, "out_bias": bias}


def _qwen3_moe(values: HfValues) -> Fields:
    if values.items("mlp_only_layers"):
        values.refuse(
            "mlp_only_layers",
            "dense layers scattered among the expert layers cannot be written as a rule",
            "Write the dims into the workload file.",
        )
    moe = MoeDims(
        experts=values.size("num_experts", "num_local_experts"),
        experts_per_token=values.size("num_experts_per_tok"),
        mlp=values.size("moe_intermediate_size"),
        every=values.size("decoder_sparse_step", default=1),
    )
    return {**_qwen3(values), "moe": moe}


def _gemma2(values: HfValues) -> Fields:
    return {
        **_decoder(values.with_defaults({"head_dim": 256}), tied=True),
        "layer_norms": 4,
        "sliding_window": values.size("sliding_window", default=4096),
        "global_every": _global_every(values, 2),
    }


def _gemma3(values: HfValues) -> Fields:
    filled = values.with_defaults(
        {
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "vocab_size": 262208,
            "max_position_embeddings": 131072,
            "sliding_window": 4096,
            "sliding_window_pattern": 6,
        }
    )
    return {
        **_decoder(filled, tied=True),
        "layer_norms": 4,
        "qk_norm": True,
        "sliding_window": filled.size("sliding_window"),
        "global_every": _global_every(filled, filled.size("sliding_window_pattern")),
    }


def _deepseek(values: HfValues, *, router_bias: bool) -> Fields:
    heads = values.size("num_attention_heads")
    mla = MlaDims(
        q_lora_rank=values.optional_size("q_lora_rank"),
        kv_lora_rank=values.size("kv_lora_rank"),
        qk_nope_head_dim=values.size("qk_nope_head_dim"),
        qk_rope_head_dim=values.size("qk_rope_head_dim"),
        v_head_dim=values.size("v_head_dim"),
    )
    moe = None
    experts = values.optional_size("n_routed_experts")
    if experts is not None:
        shared = values.optional_size("n_shared_experts") or 0
        inner = values.size("moe_intermediate_size")
        moe = MoeDims(
            experts=experts,
            experts_per_token=values.size("num_experts_per_tok"),
            mlp=inner,
            shared_experts=shared,
            shared_mlp=shared * inner,
            dense_layers=values.optional_size("first_k_dense_replace") or 0,
            every=values.size("moe_layer_freq", default=1),
            router_bias=router_bias,
        )
    # Every head has its own key and value, rebuilt from the latent.
    filled = values.with_defaults({"head_dim": mla.v_head_dim})
    return {**_decoder(filled, tied=False), "kv_heads": heads, "mla": mla, "moe": moe}


def _gpt_oss(values: HfValues) -> Fields:
    filled = values.with_defaults({"head_dim": 64, "sliding_window": 128})
    fields = _decoder(filled, tied=False)
    moe = MoeDims(
        experts=values.size("num_local_experts", "num_experts"),
        experts_per_token=values.size("num_experts_per_tok", "experts_per_token"),
        mlp=fields["mlp"],
        router_bias=True,
    )
    bias = values.flag("attention_bias", default=True)
    return {
        **fields,
        "moe": moe,
        "qkv_bias": bias,
        "out_bias": bias,
        "mlp_bias": True,
        "sinks": True,
        "sliding_window": filled.size("sliding_window"),
        "global_every": _global_every(values, 2),
    }


def _llama4(values: HfValues) -> Fields:
    fields = _decoder(values.with_defaults({"head_dim": 128}), tied=False)
    expert = fields["mlp"]
    moe = MoeDims(
        experts=values.size("num_local_experts"),
        experts_per_token=values.size("num_experts_per_tok", default=1),
        mlp=expert,
        shared_experts=1,
        shared_mlp=expert,
        every=values.size("interleave_moe_layer_step", default=1),
    )
    return {
        **fields,
        "mlp": values.size("intermediate_size_mlp"),
        "moe": moe,
        "sliding_window": values.optional_size("attention_chunk_size"),
        "global_every": values.size("no_rope_layer_interval", default=4),
        "chunked": True,
    }


def _nemotron(values: HfValues) -> Fields:
    return {**_llama(values), "gated_mlp": False, "norm": "layernorm"}


def _gpt_neox(values: HfValues) -> Fields:
    bias = values.flag("attention_bias", default=True)
    return {
        **_decoder(values, tied=False),
        "gated_mlp": False,
        "norm": "layernorm",
        "qkv_bias": bias,
        "out_bias": bias,
        "mlp_bias": True,
        "parallel_block": values.flag("use_parallel_residual", default=True),
    }


def _gpt_like(values: HfValues, fields: Fields) -> Fields:
    """What GPT-2's line has in common: biases, layer norms, no gate."""
    heads, embed = fields["heads"], fields["embed"]
    if embed % heads:
        values.refuse("num_attention_heads", f"it has to divide {embed}", "Correct one of the two.")
    return {
        "head_dim": embed // heads,
        "kv_heads": heads,
        "gated_mlp": False,
        "norm": "layernorm",
        "qkv_bias": True,
        "out_bias": True,
        "mlp_bias": True,
        **fields,
    }


def _opt(values: HfValues) -> Fields:
    embed = values.size("hidden_size")
    if values.size("word_embed_proj_dim", default=embed) != embed:
        values.refuse(
            "word_embed_proj_dim",
            "token tables narrower than the model (OPT-350m) have no field",
            "Use another size.",
        )
    positions = values.size("max_position_embeddings", default=2048)
    bias = values.flag("enable_bias", default=True)
    fields = {
        "layers": values.size("num_hidden_layers"),
        "embed": embed,
        "heads": values.size("num_attention_heads"),
        "mlp": values.size("ffn_dim"),
        "vocab": values.size("vocab_size"),
        "tied_embeddings": values.flag("tie_word_embeddings", default=True),
        # Two rows ahead of the first position, from fairseq's padding index.
        "learned_positions": positions + 2,
        "max_sequence": positions,
        "qkv_bias": bias,
        "out_bias": bias,
        "mlp_bias": bias,
    }
    return _gpt_like(values, fields)


def _gpt2(values: HfValues) -> Fields:
    embed = values.size("n_embd", "hidden_size")
    positions = values.size("n_positions", "max_position_embeddings", default=1024)
    fields = {
        "layers": values.size("n_layer", "num_hidden_layers"),
        "embed": embed,
        "heads": values.size("n_head", "num_attention_heads"),
        "mlp": values.size("n_inner", default=4 * embed),
        "vocab": values.size("vocab_size"),
        "tied_embeddings": values.flag("tie_word_embeddings", default=True),
        "learned_positions": positions,
        "max_sequence": positions,
    }
    return _gpt_like(values, fields)


def _gpt_bigcode(values: HfValues) -> Fields:
    fields = _gpt2(values)
    return {
        **fields,
        "kv_heads": 1 if values.flag("multi_query", default=True) else fields["heads"],
    }


def _mpt(values: HfValues) -> Fields:
    embed = values.size("d_model")
    heads = values.size("n_heads")
    attention = values.section("attn_config")
    bias = not values.flag("no_bias", default=True)
    learned = values.flag("learned_pos_emb", default=True) and not attention.flag("alibi")
    sequence = values.size("max_seq_len", default=2048)
    shared = attention.text("attn_type", "multihead_attention") == "multiquery_attention"
    fields = {
        "layers": values.size("n_layers"),
        "embed": embed,
        "heads": heads,
        "kv_heads": 1 if shared else attention.size("kv_n_heads", default=heads),
        "mlp": values.size("expansion_ratio", default=4) * embed,
        "vocab": values.size("vocab_size"),
        "tied_embeddings": values.flag("tie_word_embeddings", default=True),
        "learned_positions": sequence if learned else 0,
        "max_sequence": sequence,
        "norm": "layernorm" if bias else "layernorm_no_bias",
        "qkv_bias": bias,
        "out_bias": bias,
        "mlp_bias": bias,
    }
    return _gpt_like(values, fields)


def _t5(values: HfValues, *, tied: bool, projection: str) -> Fields:
    layers = values.size("num_layers")
    heads = values.size("num_heads")
    return {
        "layers": values.size("num_decoder_layers", default=layers),
        "encoder_layers": layers,
        "embed": values.size("d_model"),
        "heads": heads,
        "kv_heads": heads,
        "head_dim": values.size("d_kv"),
        "mlp": values.size("d_ff"),
        "gated_mlp": values.text("feed_forward_proj", projection).startswith("gated"),
        "vocab": values.size("vocab_size"),
        "tied_embeddings": values.flag("tie_word_embeddings", default=tied),
        "position_buckets": values.size("relative_attention_num_buckets", default=32),
        "layer_norms": 3,
    }


READERS: dict[str, Callable[[HfValues], Fields]] = {
    "deepseek_v2": lambda values: _deepseek(values, router_bias=False),
    "deepseek_v3": lambda values: _deepseek(values, router_bias=True),
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3_text": _gemma3,
    "gpt2": _gpt2,
    "gpt_bigcode": _gpt_bigcode,
    "gpt_neox": _gpt_neox,
    "gpt_oss": _gpt_oss,
    "kimi_k2": lambda values: _deepseek(values, router_bias=True),
    "llama": _llama,
    "llama4": _llama4,
    "llama4_text": _llama4,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "mpt": _mpt,
    "mt5": lambda values: _t5(values, tied=False, projection="gated-gelu"),
    "nemotron": _nemotron,
    "opt": _opt,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_moe_text": _qwen3_moe,
    "qwen3_vl_text": _qwen3,
    "t5": lambda values: _t5(values, tied=True, projection="relu"),
}
