"""ModelSpec: the dims of a transformer from which parameters, FLOPs and bytes follow."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from prompts_agent.errors import ModelError
from prompts_agent.record import Record

__all__ = ["INFERRED", "MlaDims", "ModelSpec", "MoeDims"]

INFERRED = "inferred"
"""Name of an architecture that was told from weight shapes and that no catalogue names."""


class MlaDims(Record):
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).

    Keys and values are rebuilt from one latent of `kv_lora_rank` a token, shared by all heads, and
    one rotary key of `qk_rope_head_dim`. `q_lora_rank` None: queries are projected directly
    (V2-Lite).
    """

    q_lora_rank: PositiveInt | None
    kv_lora_rank: PositiveInt
    qk_nope_head_dim: PositiveInt
    qk_rope_head_dim: PositiveInt
    v_head_dim: PositiveInt


class MoeDims(Record):
    """A mixture of experts in place of the feed-forward block.

    `mlp` is the inner dim of one expert. `shared_mlp` is the inner dim of all `shared_experts`
    together. Layer i (from 0) has experts where i >= `dense_layers` and (i + 1) is a multiple of
    `every`; the others have the dense block of `ModelSpec.mlp`.
    """

    experts: PositiveInt
    experts_per_token: PositiveInt
    mlp: PositiveInt
    shared_experts: NonNegativeInt = 0
    shared_mlp: NonNegativeInt = 0
    dense_layers: NonNegativeInt = 0
    every: PositiveInt = 1
    router_bias: bool = False


class ModelSpec(Record):
    """One architecture. `layers` are decoder layers; `encoder_layers` > 0 makes it encoder-decoder.

    `mlp` is the inner dim of the dense feed-forward block and `gated_mlp` its form: three matrices
    (SwiGLU, GeGLU) or two. `layer_norms` counts the norms over `embed` in a decoder layer.
    `learned_positions` is the number of rows of a learned position table, 0 for rotary and the
    like; `position_buckets` that of T5's relative bias, one table a stack.
    With `sliding_window`, one layer in `global_every` attends to everything and the others to a
    window of that many tokens (None: no layer is global); `chunked` windows start afresh instead of
    sliding. `sinks` adds one learned logit a head (gpt-oss). None is unknown or absent.
    """

    name: str
    family: str
    layers: PositiveInt
    embed: PositiveInt
    heads: PositiveInt
    kv_heads: PositiveInt
    head_dim: PositiveInt
    mlp: PositiveInt
    gated_mlp: bool
    vocab: PositiveInt
    tied_embeddings: bool
    mla: MlaDims | None = None
    moe: MoeDims | None = None
    learned_positions: NonNegativeInt = 0
    position_buckets: NonNegativeInt = 0
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    norm: Literal["rms", "layernorm", "layernorm_no_bias"] = "rms"
    layer_norms: NonNegativeInt = 2
    qk_norm: bool = False
    embedding_norm: bool = False
    sinks: bool = False
    encoder_layers: NonNegativeInt = 0
    sliding_window: PositiveInt | None = None
    global_every: PositiveInt | None = None
    chunked: bool = False
    parallel_block: bool = False
    max_sequence: PositiveInt | None = None
    source: str
    published_parameters: PositiveInt | None = None
    published_source: str | None = None
    published_active_parameters: PositiveInt | None = None

    @model_validator(mode="after")
    def _dims_agree(self) -> Self:
        if self.heads % self.kv_heads:
            raise ModelError(
                f"{self.heads} heads with {self.kv_heads} kv_heads in {self.name!r}",
                rule="every KV head serves the same number of heads",
                cure="Make heads a multiple of kv_heads.",
            )
        if self.moe is not None and self.moe.experts_per_token > self.moe.experts:
            raise ModelError(
                f"{self.moe.experts_per_token} experts a token in {self.name!r}",
                rule=f"there are {self.moe.experts} experts",
                cure="Make experts_per_token at most experts.",
            )
        if self.published_parameters is not None and not self.published_source:
            raise ModelError(
                f"published_parameters of {self.name!r}",
                rule="every number has a source",
                cure="Add published_source.",
            )
        return self

    @property
    def attention(self) -> Literal["mha", "gqa", "mqa", "mla"]:
        """How keys and values are shared among heads."""
        if self.mla is not None:
            return "mla"
        if self.kv_heads == self.heads:
            return "mha"
        return "mqa" if self.kv_heads == 1 else "gqa"

    @property
    def qk_head_dim(self) -> int:
        """The dim over which a query meets a key."""
        if self.mla is not None:
            return self.mla.qk_nope_head_dim + self.mla.qk_rope_head_dim
        return self.head_dim

    @property
    def v_head_dim(self) -> int:
        """The dim of a value."""
        return self.mla.v_head_dim if self.mla is not None else self.head_dim

    @property
    def moe_layers(self) -> int:
        """Decoder layers with experts."""
        if self.moe is None:
            return 0
        return self.layers // self.moe.every - self.moe.dense_layers // self.moe.every

    @property
    def global_layers(self) -> int:
        """Decoder layers whose attention sees the whole context."""
        if self.sliding_window is None:
            return self.layers
        return self.layers // self.global_every if self.global_every is not None else 0
