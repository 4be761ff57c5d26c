"""Dropless: a mixture whose experts take every token that is sent to them.

Tokens are sorted by expert and multiplied by a grouped matmul (MegaBlocks, arXiv 2211.15841). Where
ranks hold different experts, tokens go to them by an all-to-all and come back; ranks that see the
same tokens take the ones of their own experts and add their outputs up.

A program of fixed shapes needs buffers of fixed size. They have room for even routing, which is
what software with buffers of varying size holds on average (`Frame.even`); what goes beyond is
left out, which no shape hangs on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from prompts_agent.compile.reference.block import Tree, activated
from prompts_agent.compile.reference.expert_ranks import ExpertRanks
from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.rows import collected, placed, places, taken
from prompts_agent.compile.reference.untyped import exchanged, named, scattered, summed, varying
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.specs import Spec

__all__ = ["dropless"]

_EVEN = 8
"""Rooms are multiples of a TPU register's sublanes."""
_EMBED = {"up": 1, "gate": 1, "down": 2}
"""The embed dim of each of an expert's weights."""
_CLASS = {"up": "experts.in", "gate": "experts.in", "down": "experts.out"}


def dropless(
    frame: Frame, weight: Tree, x: jax.Array, shares: jax.Array, chosen: jax.Array
) -> jax.Array:
    """X [b, s, embed] through the experts `chosen` [b, s, k], weighed by `shares` [b, s, k]."""
    ranks = frame.experts
    assert ranks is not None  # noqa: S101  (only mixtures come here)
    kind = frame.compute
    tokens = _tokens_spec(frame, ranks, x.shape)
    names = [name for name in ("gate", "up", "down") if name in weight]
    held: Tree = {name: weight[name].astype(kind) for name in names}
    cut = frame.spec(tokens, x.shape)
    used = {axis for entry in tokens for axis in frame.axes(entry)}
    # Where ranks see the same tokens, what gathers their weights is left to the partitioner.
    ranks = replace(ranks, embed=tuple(axis for axis in ranks.embed if axis in used))
    specs = ranks.specs()
    cuts = {name: frame.spec(specs[_CLASS[name]], held[name].shape) for name in names}
    run = jax.shard_map(
        _local(frame, ranks, tokens),
        mesh=frame.mesh,
        in_specs=(cut, cut, cut, cuts),
        out_specs=cut,
    )
    if ranks.embed and frame.layout.remat is Remat.NONE:
        # Gathered weights are gathered again in the backward pass, as FSDP does; all else is kept.
        run = jax.checkpoint(run, policy=_all_but_gathered, prevent_cse=False)
    y: jax.Array = run(x, shares, chosen, held)
    return frame.hold(y, "activations")


def _tokens_spec(frame: Frame, ranks: ExpertRanks, shape: tuple[int, ...]) -> Spec:
    """Tokens as they lie between layers; in training every rank of experts sends tokens of its own.

    Where tensor ranks hold different experts, each takes its part of the sequence, as
    sequence_parallel has it already.
    """
    batch, sequence, _ = (frame.axes(entry) for entry in frame.specs["activations"])
    if frame.workload.phase.is_training:
        sequence += tuple(n for n in ranks.over if n not in (*batch, *sequence))
    spec: Spec = (batch or None, sequence or None, None)
    kept = frame.spec(spec, shape)
    return tuple(kept)


def _local(
    frame: Frame, ranks: ExpertRanks, tokens: Spec
) -> Callable[[jax.Array, jax.Array, jax.Array, Tree], jax.Array]:
    """What one device does with its tokens [b, s, …] and its weights."""
    batch, sequence = frame.axes(tokens[0]), frame.axes(tokens[1])
    cut = (*batch, *sequence)
    together = tuple(n for n in sequence if n in ranks.inner)
    added = tuple(n for n in (*ranks.over, *ranks.inner) if n not in cut)
    own = (*ranks.over, *ranks.embed, *ranks.inner)
    seen = tuple(n for n in cut if n not in own)

    def local(x: jax.Array, shares: jax.Array, chosen: jax.Array, weight: Tree) -> jax.Array:
        x, shares, chosen = (varying(one, added) for one in (x, shares, chosen))
        weight = {name: _gathered(varying(w, seen), ranks, name) for name, w in weight.items()}
        if together:
            x, shares, chosen = (
                lax.all_gather(one, together, axis=1, tiled=True) for one in (x, shares, chosen)
            )
        flat = x.reshape(-1, x.shape[-1])
        rows = _sent(frame, ranks, cut, (flat, shares.reshape(-1, 1), chosen.reshape(-1)), weight)
        y = rows.reshape(flat.shape[0], -1, flat.shape[1]).sum(axis=1).reshape(x.shape)
        return scattered(summed(y, added), together, 1)

    return local


def _gathered(weight: jax.Array, ranks: ExpertRanks, name: str) -> jax.Array:
    if not ranks.embed:
        return weight
    found: jax.Array = lax.all_gather(weight, ranks.embed, axis=_EMBED[name], tiled=True)
    return found


def _all_but_gathered(primitive: Any, *_: Any, **__: Any) -> bool:
    """A remat policy."""
    return "all_gather" not in str(primitive.name)


def _sent(
    frame: Frame,
    ranks: ExpertRanks,
    cut: tuple[str, ...],
    tokens: tuple[jax.Array, jax.Array, jax.Array],
    weight: Tree,
) -> jax.Array:
    """Tokens [t, d] with the shares [t × k, 1] and numbers [t × k] of their experts through the
    experts of all ranks, [t × k, d].
    """
    x, shares, chosen = tokens
    if not ranks.over:
        return _through(frame, x, shares, chosen, weight)
    local, rows = weight["up"].shape[0], chosen.shape[0]
    target, mine = _target(frame, ranks, chosen // local, cut)
    exchange = tuple(name for name in ranks.over if name in cut)
    groups = frame.size(*exchange)
    at = places(
        jnp.where(mine, target, groups), groups, _room(frame, rows, frame.size(*ranks.over))
    )
    sent = placed(x, at.source, at.place, rows // x.shape[0])
    share = placed(shares, at.source, at.place, 1)
    number = jnp.where(at.source < rows, taken(chosen, at.source) % local, local)
    sent, share, number = (exchanged(one, exchange) for one in (sent, share, number))
    done = exchanged(_through(frame, sent, share, number, weight), exchange)
    return collected(done, at.source, at.place)


def _target(
    frame: Frame, ranks: ExpertRanks, owner: jax.Array, cut: tuple[str, ...]
) -> tuple[jax.Array, jax.Array]:
    """Of each row whose expert rank `owner` holds: to which rank it goes along the axes that tokens
    are cut over, and whether it is this device that sends it (of those that see the same tokens).
    """
    target, mine = jnp.zeros_like(owner), jnp.ones_like(owner, dtype=bool)
    stride = frame.size(*ranks.over)
    for name in ranks.over:
        size = frame.size(name)
        stride //= size
        place = owner // stride % size
        if name in cut:
            target = target * size + place
        else:
            mine &= place == lax.axis_index(name)
    return target, mine


def _room(frame: Frame, rows: int, groups: int) -> int:
    if not frame.even:
        return rows
    return min(rows, -(-rows // (groups * _EVEN)) * _EVEN)


def _through(
    frame: Frame, x: jax.Array, shares: jax.Array, expert: jax.Array, weight: Tree
) -> jax.Array:
    """Rows through this device's own experts: of tokens [t, d] the experts [n], several a token one
    behind the other, weighed by `shares` [n, 1]; [n, d].

    On TPUs the grouped matmul is jax's ragged product, which its compiler makes a kernel. On GPUs
    it would be a product with every expert, masked; there all experts get equally many rows.
    """
    experts, rows = weight["up"].shape[0], expert.shape[0]
    room = None if frame.kernel == "splash" else _room(frame, rows, experts)
    at = places(expert, experts, room)
    packed = placed(x, at.source, at.place, rows // x.shape[0])
    share = placed(shares, at.source, at.place, 1)

    def product(x: jax.Array, weight: jax.Array) -> jax.Array:
        if room is None:
            found: jax.Array = lax.ragged_dot(x, weight, at.sizes)
            return found
        y = jnp.einsum("erd,edf->erf", x.reshape(experts, room, -1), weight)
        return y.reshape(x.shape[0], -1)

    gate = named(product(packed, weight["gate"]), "mlp") if "gate" in weight else None
    up = named(product(packed, weight["up"]), "mlp")
    # Shares are multiplied in here, in one kernel with the activation, as Megatron-Core and
    # torchtitan can do: the experts' outputs need not be kept then.
    inner = _weighed(gate, up, share)
    return collected(product(inner, weight["down"]), at.source, at.place)


@jax.custom_vjp
def _weighed(gate: jax.Array | None, up: jax.Array, share: jax.Array) -> jax.Array:
    """The activation times the shares; its inputs alone are kept for the backward pass."""
    return activated(gate, up) * share


def _weighed_forward(*given: Any) -> Any:
    return _weighed(*given), given


def _weighed_backward(given: Any, gradient: jax.Array) -> Any:
    _, back = jax.vjp(lambda gate, up, share: activated(gate, up) * share, *given)
    return back(gradient)


_weighed.defvjp(_weighed_forward, _weighed_backward)
