"""Architecture: a ModelSpec as the formulas want it, with layers of different kinds averaged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from prompts_agent.model.cost import forward_flops_per_token, kv_bytes
from prompts_agent.model.count import parameters
from prompts_agent.model.spec import ModelSpec

__all__ = ["Architecture", "architecture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Dims, and parameters per layer: the mean over all layers where they differ (dense and expert
    layers, encoder and decoder), so that layers × mean is the model's exact count.
    """

    spec: ModelSpec
    layers: int
    embed: int
    heads: int
    kv_heads: int
    head_dim: int
    """Of a query meeting a key, and of a value, on average."""
    vocab: int
    tied: bool
    mlp_inputs: int
    """Matmul outputs that the mlp's product takes: gate and up 2, else 1."""
    dense_mlp_width: float
    """Inner dim of the dense mlp and the shared experts."""
    active_mlp_width: float
    """The same and the inner dims of the experts that a token is sent to."""
    expert_width: int
    experts: int
    """0 for a dense model."""
    experts_per_token: int
    expert_layer_share: float
    """Layers with experts ÷ layers."""
    attention_layer_parameters: float
    dense_mlp_layer_parameters: float
    expert_layer_parameters: float
    """All experts of a layer."""
    active_expert_layer_parameters: float
    small_layer_parameters: float
    """Norms, routers: whole on every device."""
    embedding_parameters: int
    """Token table and output table; one where they are tied."""
    active_parameters: int
    """That enter a token's matmuls, with the output table."""
    total_parameters: int
    kv_has_heads: bool
    """False for a latent cache (MLA), which has no heads to cut over tensor."""
    cached_width: int
    """Products of one query head with one cached token: with its key, and with its value. Of a
    latent (absorbed projections) that is the latent and the rotary key, and the latent again."""

    @property
    def dense_layer_parameters(self) -> float:
        """Attention and dense mlp of a layer."""
        return self.attention_layer_parameters + self.dense_mlp_layer_parameters

    @property
    def kv_elements_per_layer(self) -> float:
        """Elements that a token adds to a layer's cache while no window is full."""
        return kv_bytes(self.spec, 1, 1.0) / self.spec.layers

    def attended_tokens(self, sequence: int) -> float:
        """Keys that a token of a causal sequence meets in a layer, on average: S/2, or a window."""
        flops = forward_flops_per_token(self.spec, sequence).attention
        width = self.spec.qk_head_dim + self.spec.v_head_dim
        return flops / (2.0 * self.spec.layers * self.spec.heads * width)

    def cached_tokens(self, context: int) -> float:
        """Tokens of a context that a layer's cache holds on average; windows hold fewer."""
        return self.kv_elements(context) / (self.kv_elements_per_layer * self.layers)

    def kv_elements(self, context: int) -> float:
        """Elements of the cache of one sequence of `context` tokens, all layers; windows count as
        what they hold.
        """
        return kv_bytes(self.spec, context, 1.0)


@lru_cache(maxsize=64)
def architecture(spec: ModelSpec) -> Architecture:
    """The averages of `spec`; parameter counts come from `prompts_agent.model.count`."""
    count = parameters(spec)
    moe, layers = spec.moe, spec.layers + spec.encoder_layers
    dense_share = (layers - spec.moe_layers) / layers
    expert_share = spec.moe_layers / layers
    shared = moe.shared_mlp if moe else 0
    routed = moe.mlp * moe.experts_per_token if moe else 0
    dense_width = spec.mlp * dense_share + shared * expert_share
    per_token = moe.experts_per_token if moe else 0
    return Architecture(
        spec=spec,
        layers=layers,
        embed=spec.embed,
        heads=spec.heads,
        kv_heads=spec.kv_heads,
        head_dim=(spec.qk_head_dim + spec.v_head_dim) // 2,
        vocab=spec.vocab,
        tied=spec.tied_embeddings,
        mlp_inputs=2 if spec.gated_mlp else 1,
        dense_mlp_width=dense_width,
        active_mlp_width=dense_width + routed * expert_share,
        expert_width=moe.mlp if moe else 0,
        experts=moe.experts if moe else 0,
        experts_per_token=per_token,
        expert_layer_share=expert_share,
        attention_layer_parameters=count.attention / layers,
        dense_mlp_layer_parameters=(count.dense_mlp + count.shared_experts) / layers,
        expert_layer_parameters=count.experts / layers,
        active_expert_layer_parameters=count.expert * per_token * expert_share,
        small_layer_parameters=(count.norms + count.routers) / layers,
        embedding_parameters=count.embedding + count.head,
        active_parameters=count.matmul,
        total_parameters=count.total,
        kv_has_heads=spec.mla is None,
        cached_width=spec.qk_head_dim + spec.v_head_dim
        if spec.mla is None
        else 2 * spec.mla.kv_lora_rank + spec.mla.qk_rope_head_dim,
    )
