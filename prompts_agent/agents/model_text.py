"""What a model is called: its name, or the dims of one that was told from weight shapes."""

from __future__ import annotations

from prompts_agent.model.count import parameters
from prompts_agent.model.spec import INFERRED, ModelSpec
from prompts_agent.units import format_flops

__all__ = ["dims_text", "model_text"]


def model_text(model: ModelSpec) -> str:
    """The name; of an inferred model its dims, since a person cannot look it up."""
    return model.name if model.name != INFERRED else f"{INFERRED}: {dims_text(model)}"


def dims_text(model: ModelSpec) -> str:
    """`4 layers, embed 512, 8 heads (2 KV), mlp 1408, vocab 8192, about 14.2 M parameters`."""
    kv = "latent attention" if model.mla is not None else f"{model.kv_heads} KV"
    parts = [
        f"{model.layers} layers",
        f"embed {model.embed}",
        f"{model.heads} heads ({kv})",
        *([f"mlp {model.mlp}"] if model.moe_layers < model.layers else []),
        *_experts(model),
        f"vocab {model.vocab}",
        f"about {format_flops(parameters(model).total)} parameters",
    ]
    return ", ".join(parts)


def _experts(model: ModelSpec) -> list[str]:
    if model.moe is None:
        return []
    each = f"{model.moe.experts_per_token} a token"
    return [f"{model.moe.experts} experts ({each}) of mlp {model.moe.mlp}"]
