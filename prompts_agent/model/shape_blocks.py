"""The dims of the attention and feed-forward blocks in the weights of one layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prompts_agent.model.shape_layers import Weight
from prompts_agent.model.shape_names import Role

__all__ = ["Attention", "FeedForward", "read_attention", "read_mlp"]

_ATTENTION = {Role.Q, Role.K, Role.V, Role.KV, Role.QKV, Role.O}


@dataclass(frozen=True)
class Attention:
    """Widths of queries and of keys, all heads together; `head_dim` where the shapes show it."""

    q_dim: int
    kv_dim: int
    head_dim: int | None
    weights: tuple[Weight, ...]


@dataclass(frozen=True)
class FeedForward:
    """Inner dim, three matrices or two, experts or None, inner dim of a shared expert or None."""

    inner: int
    gated: bool
    experts: int | None
    shared: int | None


def read_attention(weights: Sequence[Weight], embed: int) -> Attention | None:
    """By name where the names say enough, else by shape; None where neither does."""
    named = {w.role: w for w in weights if w.role is not None and w.role in _ATTENTION}
    return _named_attention(named, embed) if named else _shaped_attention(weights, embed)


def _named_attention(named: dict[Role, Weight], embed: int) -> Attention | None:
    widths = {role: math.prod(weight.dims) // embed for role, weight in named.items()}
    q_dim = widths.get(Role.Q) or widths.get(Role.O)
    if q_dim is None and Role.QKV in widths and widths[Role.QKV] % 3 == 0:
        q_dim = widths[Role.QKV] // 3
    if q_dim is None:
        return None
    if Role.K in widths:
        kv_dim = widths[Role.K]
    elif Role.KV in widths:
        kv_dim = widths[Role.KV] // 2
    elif Role.QKV in widths:
        kv_dim = (widths[Role.QKV] - q_dim) // 2
    else:
        return None
    if kv_dim < 1 or q_dim % kv_dim:
        return None
    return Attention(q_dim, kv_dim, _head_dim(named, embed), tuple(named.values()))


def _head_dim(named: dict[Role, Weight], embed: int) -> int | None:
    """From (embed, heads, head_dim) or (heads, head_dim, embed): the dim beside heads."""
    for role in (Role.Q, Role.K, Role.V, Role.O):
        weight = named.get(role)
        if weight is None or len(weight.dims) != 3:
            continue
        if weight.dims[0] == embed:
            return weight.dims[2]
        if weight.dims[2] == embed:
            return weight.dims[1]
    return None


def _shaped_attention(weights: Sequence[Weight], embed: int) -> Attention | None:
    """Square matrices are queries and output, narrower pairs keys and values, 3 x embed is all."""
    flat = [weight for weight in weights if len(weight.dims) == 2 and weight.role is None]
    square = [weight for weight in flat if weight.dims == (embed, embed)]
    squares = sum(weight.count for weight in square)
    width = {id(weight): math.prod(weight.dims) // embed for weight in flat}
    narrow = [w for w in flat if width[id(w)] < embed and w.count >= 2 and embed in w.dims]
    fused = [
        w for w in flat if embed < width[id(w)] <= 3 * embed and w.count == 1 and embed in w.dims
    ]
    # A feed-forward matrix has a partner of the other orientation, a fused projection has none.
    fused = [w for w in fused if not any(v.dims == w.dims[::-1] for v in flat)]
    if squares >= 4:
        return Attention(embed, embed, None, tuple(square))
    if squares >= 2 and narrow:
        pair = max(narrow, key=lambda weight: width[id(weight)])
        return Attention(embed, width[id(pair)], None, (*square, pair))
    if squares == 1 and fused:
        kv_dim = (width[id(fused[0])] - embed) // 2
        if kv_dim >= 1 and embed % kv_dim == 0:
            return Attention(embed, kv_dim, None, (*square, fused[0]))
    return None


def read_mlp(
    weights: Sequence[Weight], embed: int, attention: Attention | None
) -> FeedForward | None:
    """The block's dims; a tensor of rank 3 with `embed` inside has experts in front."""
    taken = {id(weight) for weight in attention.weights} if attention is not None else set()
    rest = [w for w in weights if id(w) not in taken and w.role not in _ATTENTION]
    if attention is None:
        return None
    # (2, embed, mlp) is a gate beside its up projection, no pair of experts.
    paired = [w for w in rest if w.role is Role.GATE_UP and w.dims[0] == 2 and len(w.dims) == 3]
    expert = [w for w in rest if len(w.dims) == 3 and embed in w.dims[1:] and w not in paired]
    numbered = [w for w in rest if len(w.dims) == 2 and "#" in _inner_path(w) and w.count > 1]
    flat = [w for w in rest if (len(w.dims) == 2 and w.role is not Role.ROUTER) or w in paired]
    dense = [w for w in flat if w not in numbered]
    if expert:
        experts = expert[0].dims[0]
        block = _block([Weight(w.tokens, w.dims[1:], w.count) for w in expert], embed)
    elif numbered:
        experts = min(w.count for w in numbered)
        block = _block([Weight(w.tokens, w.dims, w.count // experts) for w in numbered], embed)
    else:
        block = _block(dense, embed)
        return FeedForward(*block, experts=None, shared=None) if block else None
    # The router is embed x experts, by name or by that shape.
    beside = [w for w in dense if math.prod(w.dims) != embed * experts]
    shared = _block(beside, embed)
    if block is None:
        return None
    return FeedForward(*block, experts=experts, shared=shared[0] if shared else None)


def _inner_path(weight: Weight) -> tuple[str, ...]:
    """The path behind the layer's own number."""
    first = weight.tokens.index("#") if "#" in weight.tokens else -1
    return weight.tokens[first + 1 :]


def _block(weights: Iterable[Weight], embed: int) -> tuple[int, bool] | None:
    """(inner dim, gated) of matrices into and out of the block."""
    weights = [weight for weight in weights if embed in weight.dims]
    fused = [w for w in weights if w.role is Role.GATE_UP]
    if fused:
        return math.prod(fused[0].dims) // embed // 2, True
    widths: dict[int, int] = {}
    for weight in weights:
        width = math.prod(weight.dims) // embed
        widths[width] = widths.get(width, 0) + weight.count
    if not widths:
        return None
    whole = [width for width, count in widths.items() if count >= 2]
    if whole:
        inner = max(whole)
        return inner, widths[inner] >= 3
    # One matrix twice as wide as the other: gate and up side by side.
    inner = min(widths)
    return (inner, True) if 2 * inner in widths else None
