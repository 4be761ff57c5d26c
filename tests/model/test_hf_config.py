"""Configs as they stand on the Hugging Face hub, against the catalog's dims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prompts_agent.errors import ModelError
from prompts_agent.model.catalog import find_model
from prompts_agent.model.count import parameters
from prompts_agent.model.hf_config import SUPPORTED_MODEL_TYPES, from_hf_config

Config = dict[str, Any]


def decoder(model_type: str, layers: int, embed: int, heads: int, kv: int, mlp: int, vocab: int,
            **more: Any) -> Config:  # fmt: skip
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": embed,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "intermediate_size": mlp,
        "vocab_size": vocab,
        **more,
    }


LATENT = {
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_layer_freq": 1,
}
CONFIGS: dict[str, Config] = {
    "llama3.1-8b": decoder(
        "llama", 32, 4096, 32, 8, 14336, 128256, max_position_embeddings=131072,
        tie_word_embeddings=False, attention_bias=False, mlp_bias=False,
    ),
    "llama3.2-1b": decoder(
        "llama", 16, 2048, 32, 8, 8192, 128256, max_position_embeddings=131072, head_dim=64,
        tie_word_embeddings=True,
    ),
    "mistral-7b-v0.1": decoder(
        "mistral", 32, 4096, 32, 8, 14336, 32000, max_position_embeddings=32768,
        sliding_window=4096,
    ),
    "mistral-nemo-12b": decoder(
        "mistral", 40, 5120, 32, 8, 14336, 131072, max_position_embeddings=131072, head_dim=128,
        sliding_window=None,
    ),
    "mixtral-8x7b": decoder(
        "mixtral", 32, 4096, 32, 8, 14336, 32000, max_position_embeddings=32768,
        num_local_experts=8, num_experts_per_tok=2, sliding_window=None,
    ),
    "qwen2.5-7b": decoder(
        "qwen2", 28, 3584, 28, 4, 18944, 152064, max_position_embeddings=131072,
        use_sliding_window=False, sliding_window=131072, max_window_layers=28,
        tie_word_embeddings=False,
    ),
    "qwen3-0.6b": decoder(
        "qwen3", 28, 1024, 16, 8, 3072, 151936, max_position_embeddings=40960, head_dim=128,
        tie_word_embeddings=True, attention_bias=False, use_sliding_window=False,
    ),
    "qwen3-30b-a3b": decoder(
        "qwen3_moe", 48, 2048, 32, 4, 6144, 151936, max_position_embeddings=40960, head_dim=128,
        num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768, decoder_sparse_step=1,
        mlp_only_layers=[], tie_word_embeddings=False,
    ),
    "gemma2-9b": decoder(
        "gemma2", 42, 3584, 16, 8, 14336, 256000, max_position_embeddings=8192, head_dim=256,
        sliding_window=4096,
    ),
    "gemma3-1b": decoder(
        "gemma3_text", 26, 1152, 4, 1, 6912, 262144, max_position_embeddings=32768, head_dim=256,
        sliding_window=512, sliding_window_pattern=6,
    ),
    # The multimodal checkpoints leave most keys of the text part to their class.
    "gemma3-4b": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
        "vision_config": {"hidden_size": 1152},
    },
    "deepseek2-lite-16b": decoder(
        "deepseek_v2", 27, 2048, 16, 16, 10944, 102400, max_position_embeddings=163840,
        q_lora_rank=None, n_routed_experts=64, num_experts_per_tok=6, moe_intermediate_size=1408,
        n_shared_experts=2, first_k_dense_replace=1, **LATENT,
    ),
    "deepseek3-671b": decoder(
        "deepseek_v3", 61, 7168, 128, 128, 18432, 129280, max_position_embeddings=163840,
        q_lora_rank=1536, n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=2048,
        n_shared_experts=1, first_k_dense_replace=3, **LATENT,
    ),
    "gpt-oss-20b": decoder(
        "gpt_oss", 24, 2880, 64, 8, 2880, 201088, max_position_embeddings=131072, head_dim=64,
        num_local_experts=32, num_experts_per_tok=4, sliding_window=128, attention_bias=True,
        layer_types=["sliding_attention", "full_attention"] * 12,
    ),
    "phi3-mini-3.8b": decoder(
        "phi3", 32, 3072, 32, 32, 8192, 32064, max_position_embeddings=4096, sliding_window=2047,
    ),
    "phi4-mini-3.8b": decoder(
        "phi3", 32, 3072, 24, 8, 8192, 200064, max_position_embeddings=131072,
        sliding_window=262144, tie_word_embeddings=True,
    ),
    "nemotron4-340b": decoder(
        "nemotron", 96, 18432, 96, 8, 73728, 256000, max_position_embeddings=4096, head_dim=192,
    ),
    "gpt-neox-20b": {
        "model_type": "gpt_neox",
        "num_hidden_layers": 44,
        "hidden_size": 6144,
        "num_attention_heads": 64,
        "intermediate_size": 24576,
        "vocab_size": 50432,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
    },
    "opt-13b": {
        "model_type": "opt",
        "num_hidden_layers": 40,
        "hidden_size": 5120,
        "num_attention_heads": 40,
        "ffn_dim": 20480,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
        "word_embed_proj_dim": 5120,
    },
    "starcoder-15b": {
        "model_type": "gpt_bigcode",
        "n_layer": 40,
        "n_embd": 6144,
        "n_head": 48,
        "n_inner": 24576,
        "n_positions": 8192,
        "vocab_size": 49152,
        "multi_query": True,
    },
    "mpt-7b": {
        "model_type": "mpt",
        "n_layers": 32,
        "d_model": 4096,
        "n_heads": 32,
        "expansion_ratio": 4,
        "max_seq_len": 2048,
        "vocab_size": 50432,
        "no_bias": True,
        "learned_pos_emb": True,
        "attn_config": {"alibi": True, "attn_type": "multihead_attention"},
    },
    "flan-t5-xxl": {
        "model_type": "t5",
        "num_layers": 24,
        "num_decoder_layers": 24,
        "d_model": 4096,
        "d_kv": 64,
        "d_ff": 10240,
        "num_heads": 64,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "vocab_size": 32128,
    },
    "llama4-maverick": {
        "model_type": "llama4",
        "text_config": decoder(
            "llama4_text", 48, 5120, 40, 8, 8192, 202048, max_position_embeddings=1048576,
            intermediate_size_mlp=16384, num_local_experts=128, num_experts_per_tok=1,
            interleave_moe_layer_step=2, attention_chunk_size=8192, head_dim=128,
        ),
    },
}  # fmt: skip
NOT_DIMS = {"name", "family", "source", "published_parameters", "published_source"}
NOT_DIMS |= {"published_active_parameters"}


@pytest.mark.parametrize("name", CONFIGS)
def test_config_gives_the_catalogs_dims(name: str) -> None:
    known = find_model(name)
    spec = from_hf_config(CONFIGS[name])
    assert spec.model_dump(exclude=NOT_DIMS) == known.model_dump(exclude=NOT_DIMS)
    assert parameters(spec).total == parameters(known).total


def test_every_model_type_of_the_list_is_covered() -> None:
    used = {config["model_type"] for config in CONFIGS.values()}
    used |= {config["text_config"]["model_type"] for config in CONFIGS.values()
             if "text_config" in config}  # fmt: skip
    same_reader = {"gpt2", "kimi_k2", "mt5", "qwen3_vl_text", "qwen3_vl_moe_text", "gemma3"}
    assert set(SUPPORTED_MODEL_TYPES) - used <= same_reader


def test_gpt2_by_hand() -> None:
    # 124,439,808 parameters: the checkpoint openai-community/gpt2.
    spec = from_hf_config(
        {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_inner": None,
         "n_positions": 1024, "vocab_size": 50257}
    )  # fmt: skip
    assert parameters(spec).total == 124_439_808


def test_from_a_file_and_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIGS["llama3.1-8b"], "_name_or_path": "my/llama"}))
    assert from_hf_config(path) == from_hf_config(tmp_path)
    assert from_hf_config(path).name == "my/llama"
    assert from_hf_config(path, name="other").name == "other"
    assert from_hf_config(path).source == str(path)


@pytest.mark.parametrize("content", [None, "", "{", "[]", "\x00"])
def test_a_file_that_is_no_config(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "config.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ModelError, match="JSON"):
        from_hf_config(path)


def test_an_unknown_type_lists_the_known_ones() -> None:
    with pytest.raises(ModelError) as error:
        from_hf_config({"model_type": "mamba"})
    assert "llama" in error.value.cure
    assert "gpt_oss" in error.value.cure


@pytest.mark.parametrize(
    ("name", "change", "value"),
    [
        ("llama3.1-8b", {"hidden_size": 0}, "hidden_size = 0"),
        ("llama3.1-8b", {"hidden_size": "4096"}, "hidden_size = '4096'"),
        ("llama3.1-8b", {"hidden_size": 4096.5}, "hidden_size = 4096.5"),
        ("llama3.1-8b", {"hidden_size": True}, "hidden_size = True"),
        ("llama3.1-8b", {"hidden_size": 4097}, "hidden_size = 4097"),
        ("llama3.1-8b", {"num_hidden_layers": None}, "without num_hidden_layers"),
        ("llama3.1-8b", {"num_key_value_heads": 7}, "32 heads with 7 kv_heads"),
        ("llama3.1-8b", {"tie_word_embeddings": "no"}, "tie_word_embeddings = 'no'"),
        ("mixtral-8x7b", {"num_experts_per_tok": 9}, "9 experts a token"),
        ("qwen2.5-7b", {"use_sliding_window": True}, "use_sliding_window = True"),
        ("qwen3-30b-a3b", {"mlp_only_layers": [3]}, "mlp_only_layers = [3]"),
        ("opt-13b", {"word_embed_proj_dim": 512}, "word_embed_proj_dim = 512"),
        ("gpt-oss-20b", {"layer_types": ["full_attention", "sliding_attention", "sliding_attention",
                                         "full_attention", "full_attention"]}, "layer_types"),
    ],
)  # fmt: skip
def test_bad_values_are_refused_by_name(name: str, change: Config, value: str) -> None:
    with pytest.raises(ModelError) as error:
        from_hf_config({**CONFIGS[name], **change})
    assert value in error.value.value
    assert error.value.cure
