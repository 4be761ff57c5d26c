"""Train: one optimizer step, with its state as a donated argument."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from prompts_agent.compile.reference.dtypes import dtype
from prompts_agent.compile.reference.forward import forward, logits
from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.optimizer import updated
from prompts_agent.compile.reference.pipeline import pipelined
from prompts_agent.compile.reference.step import Step
from prompts_agent.compile.reference.weights import Weight, weights
from prompts_agent.layout.specs import Spec

__all__ = ["train_step"]


def train_step(frame: Frame) -> Step:
    """(state, batch) → (state, loss); state holds params and the optimizer's slots.

    The batch is [accumulation, sequences, tokens + 1]; a scan over its first dim adds gradients up.
    """
    layout, precision = frame.layout, frame.workload.precision
    tree = weights(frame.workload.model, frame.specs, _stages_axis(frame))
    state = {
        "params": _abstract(frame, tree, precision.weights),
        "optimizer": tuple(
            _abstract(frame, tree, precision.optimizer_state)
            for _ in range(precision.optimizer_slots)
        ),
    }
    batch, sequence = frame.specs["tokens"]
    shape = (
        layout.gradient_accumulation,
        layout.microbatch * layout.batch_shards,
        frame.workload.sequence,
    )
    spec: Spec = (None, batch, sequence)
    tokens = frame.abstract(shape, spec, jnp.dtype(jnp.int32))

    def step(state: Any, batch: Any) -> tuple[Any, jax.Array]:
        gradients, loss = _gradients(frame, tree, state["params"], batch)
        params, slots = updated(state["params"], gradients, state["optimizer"])
        return {"params": params, "optimizer": slots}, loss

    return Step(
        function=step,
        arguments=(state, dict.fromkeys(_inputs(frame), tokens)),
        classes=({"params": "parameters", "optimizer": "optimizer"}, "inputs"),
        donated=(0,),
        out_shardings=(jax.tree.map(lambda a: a.sharding, state), None),
    )


def _inputs(frame: Frame) -> tuple[str, ...]:
    """What a batch has: an encoder reads as many tokens as the decoder."""
    encodes = ("inputs",) if frame.workload.model.encoder_layers else ()
    return ("tokens", "labels", *encodes)


def _stages_axis(frame: Frame) -> str | None:
    return "pipeline" if frame.size("pipeline") > 1 else None


def _abstract(frame: Frame, tree: Any, kind: str) -> Any:
    """The tree as arrays that are not there, cut as master copies are."""

    def absent(weight: Weight) -> jax.ShapeDtypeStruct:
        master = frame.master(weight)
        return frame.abstract(master.shape, master.spec, dtype(kind))

    return jax.tree.map(absent, tree, is_leaf=_is_weight)


def _is_weight(node: object) -> bool:
    return isinstance(node, Weight)


def _working_copy(frame: Frame, tree: Any, params: Any) -> Any:
    """The weights that the forward pass reads.

    They are the master weights themselves, cast layer by layer, unless gradients have another
    dtype than the master weights or ZeRO-1 cuts those further than the forward pass may: then a
    copy in the gradients' dtype is made of all of them at once, as frameworks do.
    """
    precision = frame.workload.precision
    kind = dtype(precision.gradients)

    def copy(weight: Weight, param: jax.Array) -> jax.Array:
        if precision.gradients != precision.weights:
            param = param.astype(kind)
        if frame.master(weight) == weight:
            return param
        # ZeRO-1 may have padded it; whole rows are taken of what is gathered.
        whole = param[tuple(slice(size) for size in weight.shape)]
        return frame.hold(whole, weight.spec)

    return jax.tree.map(copy, tree, params, is_leaf=_is_weight)


def _gradients(frame: Frame, tree: Any, params: Any, batch: Any) -> tuple[Any, jax.Array]:
    """Gradients of the mean loss, cut as the master weights are, and the loss."""
    copy = _working_copy(frame, tree, params)
    value = jax.value_and_grad(lambda params, part: _loss(frame, params, part))
    count = batch["tokens"].shape[0]
    if _stages_axis(frame):
        value = jax.value_and_grad(lambda params, part: _stages_loss(frame, params, part))
    if count == 1:
        loss, found = value(copy, jax.tree.map(lambda x: x[0], batch))
        return _cut(frame, tree, found), loss

    def add(carry: tuple[Any, jax.Array], part: Any) -> tuple[tuple[Any, jax.Array], None]:
        total, sum_ = carry
        loss, found = value(copy, part)
        found = _cut(frame, tree, found)
        return (jax.tree.map(jnp.add, total, found), sum_ + loss), None

    zero = _cut(frame, tree, jax.tree.map(jnp.zeros_like, copy))
    (total, loss), _ = lax.scan(add, (zero, jnp.float32(0)), batch)
    return jax.tree.map(lambda g: g / count, total), loss / count


def _cut(frame: Frame, tree: Any, gradients: Any) -> Any:
    """Gradients where their master weights lie: a reduce-scatter under ZeRO-1."""

    def cut(weight: Weight, gradient: jax.Array) -> jax.Array:
        master = frame.master(weight)
        if master.shape != weight.shape:
            more = [(0, to - size) for to, size in zip(master.shape, weight.shape, strict=True)]
            gradient = jnp.pad(gradient, more)
        return frame.hold(gradient, master.spec)

    return jax.tree.map(cut, tree, gradients, is_leaf=_is_weight)


def _loss(frame: Frame, params: Any, batch: Any) -> jax.Array:
    """Mean cross entropy of one microbatch."""
    x = forward(frame, params, batch["tokens"], frame.layout.remat, batch.get("inputs"))
    return _entropy(frame, params, x, batch["labels"])


def _stages_loss(frame: Frame, params: Any, batch: Any) -> jax.Array:
    """Of a microbatch that goes through a pipeline's stages."""
    x = pipelined(frame, params, batch["tokens"], frame.layout.remat)
    return _entropy(frame, params, x, batch["labels"])


def _entropy(frame: Frame, params: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean cross entropy, in fp32 over logits in the compute dtype."""
    wide = logits(frame, params, x).astype(jnp.float32)
    total = jax.nn.logsumexp(wide, axis=-1)
    if frame.one_hot_lookup:
        picked = jnp.sum(wide * jax.nn.one_hot(labels, wide.shape[-1]), axis=-1)
    else:
        picked = jnp.take_along_axis(wide, labels[..., None], axis=-1)[..., 0]
    return jnp.mean(total - picked)
