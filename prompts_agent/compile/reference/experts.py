"""Experts: a mixture in place of the mlp, by products with dispatch tensors of fixed capacity.

GShard's form (arXiv 2006.16668, section 2.2): a group of tokens sends at most `capacity` of them to
each expert. Training drops what exceeds 1.25 times the even share, as MaxText's dropping mode does;
serving drops nothing, so that every expert has room for every token of its group.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from prompts_agent.compile.reference.block import Tree, activated, dense_mlp
from prompts_agent.compile.reference.dropless import dropless
from prompts_agent.compile.reference.frame import Frame
from prompts_agent.layout.specs import Entry, Spec
from prompts_agent.model.spec import MoeDims

__all__ = ["CAPACITY_FACTOR", "capacity", "mixture"]

CAPACITY_FACTOR = 1.25
"""Room of an expert over its even share of tokens (`capacity_factor` of the Mixtral recipes)."""
_EVEN = 8
"""Capacities are multiples of a TPU register's sublanes."""


def capacity(moe: MoeDims, tokens: int, factor: float | None) -> int:
    """Tokens that one expert takes of a group; `factor` None: as many as there are."""
    if factor is None:
        return tokens
    share = math.ceil(tokens * moe.experts_per_token / moe.experts * factor)
    return min(tokens, -(-share // _EVEN) * _EVEN)


def mixture(frame: Frame, weight: Tree, x: jax.Array, *, factor: float | None) -> jax.Array:
    """X [groups, tokens, embed] → the same, through `experts_per_token` experts a token."""
    moe = frame.workload.model.moe
    assert moe is not None  # noqa: S101  (only mixtures come here)
    shares, chosen = _chosen(frame, weight, x, moe)
    if frame.dropless:
        y = dropless(frame, weight, x, shares, chosen)
    else:
        y = _dropping(frame, weight, x, capacity(moe, x.shape[1], factor), shares, chosen)
    return y + dense_mlp(frame, weight["shared"], x) if "shared" in weight else y


def _chosen(frame: Frame, weight: Tree, x: jax.Array, moe: MoeDims) -> tuple[jax.Array, jax.Array]:
    """The share and the number of each of a token's experts: both [groups, tokens, k]."""
    scores = jnp.einsum(
        "gsd,de->gse", x, weight["router"].astype(x.dtype), preferred_element_type=jnp.float32
    )
    if "router_bias" in weight:
        scores = scores + weight["router_bias"].astype(jnp.float32)
    shares, chosen = lax.top_k(jax.nn.softmax(scores, axis=-1), moe.experts_per_token)
    return (shares / shares.sum(-1, keepdims=True)).astype(frame.compute), chosen


def _dropping(
    frame: Frame, weight: Tree, x: jax.Array, room: int, shares: jax.Array, chosen: jax.Array
) -> jax.Array:
    moe = frame.workload.model.moe
    assert moe is not None  # noqa: S101  (only mixtures come here)
    dispatch, combine = _routes(frame, shares, chosen, moe.experts, room)
    sent = _exchange(frame, jnp.einsum("gsd,gsec->gecd", x, dispatch), out=True)
    done = _exchange(frame, _expert_mlp(frame, weight, sent), out=False)
    return frame.hold(jnp.einsum("gecd,gsec->gsd", done, combine), "activations")


def _routes(
    frame: Frame, shares: jax.Array, chosen: jax.Array, experts: int, room: int
) -> tuple[jax.Array, jax.Array]:
    """Where each token goes, and with which share it comes back: both [groups, tokens, e, room]."""
    groups, tokens, each = chosen.shape
    picked = jax.nn.one_hot(chosen, experts, dtype=jnp.int32)
    queue = picked.reshape(groups, tokens * each, experts)
    place = (jnp.cumsum(queue, axis=1) * queue - 1).reshape(picked.shape)
    # A place below 0 (not chosen) or beyond the room has no column: its row is all zero.
    seats = jax.nn.one_hot(place, room, dtype=frame.compute)
    combine = jnp.einsum("gskec,gsk->gsec", seats, shares)
    return lax.stop_gradient(seats.sum(axis=2)), combine


def _exchange(frame: Frame, x: jax.Array, *, out: bool) -> jax.Array:
    """The all-to-all: from groups cut over all batch axes to experts cut over theirs, or back.

    Both sides are held, because the partitioner reshards from one to the other by an all-to-all; it
    all-gathers where only one side is given.
    """
    batch = frame.axes(frame.specs["activations"][0])
    experts: Entry = frame.specs["experts.in"][0]
    rest: Entry = tuple(a for a in batch if a not in frame.axes(experts)) or None
    by_group: Spec = (frame.specs["activations"][0], None, None, None)
    by_expert: Spec = (rest, experts, None, None)
    if experts is None:
        return frame.hold(x, by_group)
    first, second = (by_group, by_expert) if out else (by_expert, by_group)
    return frame.hold(frame.hold(x, first), second)


def _expert_mlp(frame: Frame, weight: Tree, x: jax.Array) -> jax.Array:
    kind = frame.compute
    batch = frame.axes(frame.specs["activations"][0])
    experts: Entry = frame.specs["experts.in"][0]
    rest: Entry = tuple(a for a in batch if a not in frame.axes(experts)) or None
    inner_spec: Spec = (rest, experts, None, frame.specs["experts.in"][2])

    def into(name: str) -> jax.Array:
        y = jnp.einsum("gecd,edf->gecf", x, weight[name].astype(kind))
        return frame.hold(y, inner_spec)

    inner = activated(into("gate") if "gate" in weight else None, into("up"))
    return jnp.einsum("gecf,efd->gecd", inner, weight["down"].astype(kind))
