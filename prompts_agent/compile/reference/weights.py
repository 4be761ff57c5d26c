"""Weights: shape, spec and name of every tensor of the reference transformer.

A tree of `Weight`, not of arrays. `layers` is a list with an entry a stack, each a list with an
entry a layer of the period, whose weights carry the periods as their first dim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from prompts_agent.compile.reference.stacks import LayerKind, Stack, encoder_stacks, stacks
from prompts_agent.layout.specs import Spec
from prompts_agent.model.spec import MlaDims, ModelSpec

__all__ = ["Weight", "WeightTree", "count", "weights"]


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor's global shape, and the axes that cut each dim.

    `embed_dim` is the dim that ZeRO-1 cuts further; None where a tensor is too small to matter.
    """

    shape: tuple[int, ...]
    spec: Spec
    embed_dim: int | None = None
    expert: bool = False
    """One of a mixture's experts, which may lie on other ranks than dense weights."""


WeightTree = dict[str, Any]
"""Nested dicts and lists with a `Weight` at every leaf."""

Specs = Mapping[str, Spec]


def weights(model: ModelSpec, specs: Specs, over: str | None = None) -> WeightTree:
    """Every weight of `model` under `specs`, which `layout.specs.partition_specs` gives.

    `over` is the axis that cuts the stacks of layers into stages.
    """
    tree: WeightTree = {
        "embedding": Weight((model.vocab, model.embed), specs["embedding"], 1),
        "norm": _norm(model),
        "layers": [
            [_stacked(_layer(model, kind, specs), stack, over) for kind in stack.kinds]
            for stack in stacks(model)
        ],
    }
    if model.encoder_layers:
        tree["encoder"] = {
            "norm": _norm(model),
            "layers": [
                [_stacked(_encoder_layer(model, specs), stack, None) for _ in stack.kinds]
                for stack in encoder_stacks(model)
            ],
        }
    if not model.tied_embeddings:
        tree["logits"] = Weight((model.embed, model.vocab), specs["logits"], 0)
    if model.learned_positions:
        tree["positions"] = Weight(
            (model.learned_positions, model.embed), (None, specs["embedding"][1]), 1
        )
    return tree


def count(tree: object) -> int:
    """Number of parameters in a tree."""
    if isinstance(tree, Weight):
        return math.prod(tree.shape)
    children = tree.values() if isinstance(tree, dict) else tree
    assert isinstance(children, list | type({}.values()))  # noqa: S101  (for the type checker)
    return sum(count(child) for child in children)


def _stacked(layer: WeightTree, stack: Stack, over: str | None) -> WeightTree:
    """The same tree with a dim for the periods in front of every weight."""
    found: WeightTree = {}
    for name, child in layer.items():
        if isinstance(child, Weight):
            dim = None if child.embed_dim is None else child.embed_dim + 1
            found[name] = replace(
                child, shape=(stack.periods, *child.shape), spec=(over, *child.spec), embed_dim=dim
            )
        else:
            found[name] = _stacked(child, stack, over)
    return found


def _layer(model: ModelSpec, kind: LayerKind, specs: Specs) -> WeightTree:
    attention = _latent(model, model.mla, specs) if model.mla else _grouped(model, specs)
    layer: WeightTree = {"attention": attention}
    if model.encoder_layers:
        layer["cross"] = _grouped(model, specs)
    layer["norms"] = {str(index): _norm(model) for index in range(_norms(model))}
    if kind.experts:
        layer["experts"] = _experts(model, specs)
    else:
        layer["mlp"] = _mlp(model, model.mlp, specs)
    return layer


def _encoder_layer(model: ModelSpec, specs: Specs) -> WeightTree:
    return {
        "attention": _grouped(model, specs),
        "norms": {str(index): _norm(model) for index in range(2)},
        "mlp": _mlp(model, model.mlp, specs),
    }


def _norms(model: ModelSpec) -> int:
    """Norms that the reference layer has: one for a shared parallel block, two, three around
    attention to an encoder, or four.
    """
    if model.encoder_layers:
        return 3
    return 4 if model.layer_norms >= 4 else min(model.layer_norms, 2)


def _norm(model: ModelSpec) -> WeightTree:
    found = {"scale": Weight((model.embed,), (None,))}
    if model.norm == "layernorm":
        found["bias"] = Weight((model.embed,), (None,))
    return found


def _grouped(model: ModelSpec, specs: Specs) -> WeightTree:
    embed, dim = model.embed, model.head_dim
    found: WeightTree = {
        "q": Weight((embed, model.heads, dim), specs["attention.q"], 0),
        "k": Weight((embed, model.kv_heads, dim), specs["attention.k"], 0),
        "v": Weight((embed, model.kv_heads, dim), specs["attention.v"], 0),
        "o": Weight((model.heads, dim, embed), specs["attention.o"], 2),
    }
    if model.qkv_bias:
        found["q_bias"] = Weight((model.heads, dim), specs["attention.q"][1:])
        found["k_bias"] = Weight((model.kv_heads, dim), specs["attention.k"][1:])
        found["v_bias"] = Weight((model.kv_heads, dim), specs["attention.v"][1:])
    if model.out_bias:
        found["o_bias"] = Weight((embed,), (None,))
    if model.qk_norm:
        found["q_norm"] = Weight((dim,), (None,))
        found["k_norm"] = Weight((dim,), (None,))
    return found


def _latent(model: ModelSpec, mla: MlaDims, specs: Specs) -> WeightTree:
    """DeepSeek-V2's projections (arXiv 2405.04434, section 2.1); latent dims are cut like embed."""
    embed, heads = specs["attention.q"][0], specs["attention.q"][1]
    queries = mla.qk_nope_head_dim + mla.qk_rope_head_dim
    up = (embed, heads, None)
    found: WeightTree = {
        "kv_down": Weight(
            (model.embed, mla.kv_lora_rank + mla.qk_rope_head_dim), (embed, None), 0
        ),
        "kv_norm": Weight((mla.kv_lora_rank,), (None,)),
        "k_up": Weight((mla.kv_lora_rank, model.heads, mla.qk_nope_head_dim), up, 0),
        "v_up": Weight((mla.kv_lora_rank, model.heads, mla.v_head_dim), up, 0),
        "o": Weight((model.heads, mla.v_head_dim, model.embed), specs["attention.o"], 2),
    }  # fmt: skip
    if mla.q_lora_rank is None:
        found["q"] = Weight((model.embed, model.heads, queries), specs["attention.q"], 0)
    else:
        found["q_down"] = Weight((model.embed, mla.q_lora_rank), (embed, None), 0)
        found["q_norm"] = Weight((mla.q_lora_rank,), (None,))
        found["q_up"] = Weight((mla.q_lora_rank, model.heads, queries), up, 0)
    return found


def _mlp(model: ModelSpec, inner: int, specs: Specs) -> WeightTree:
    into, out = specs["mlp.in"], specs["mlp.out"]
    found: WeightTree = {"up": Weight((model.embed, inner), into, 0)}
    if model.gated_mlp:
        found["gate"] = Weight((model.embed, inner), into, 0)
    found["down"] = Weight((inner, model.embed), out, 1)
    if model.mlp_bias:
        found["up_bias"] = Weight((inner,), into[1:])
        if model.gated_mlp:
            found["gate_bias"] = Weight((inner,), into[1:])
        found["down_bias"] = Weight((model.embed,), (None,))
    return found


def _experts(model: ModelSpec, specs: Specs) -> WeightTree:
    moe = model.moe
    if moe is None:
        return {}
    into, out = specs["experts.in"], specs["experts.out"]
    found: WeightTree = {
        "router": Weight((model.embed, moe.experts), specs["router"], 0),
        "up": Weight((moe.experts, model.embed, moe.mlp), into, 1, expert=True),
        "down": Weight((moe.experts, moe.mlp, model.embed), out, 2, expert=True),
    }
    if model.gated_mlp:
        found["gate"] = Weight((moe.experts, model.embed, moe.mlp), into, 1, expert=True)
    if moe.router_bias:
        found["router_bias"] = Weight((moe.experts,), (None,))
    if moe.shared_mlp:
        found["shared"] = _mlp(model, moe.shared_mlp, specs)
    return found
