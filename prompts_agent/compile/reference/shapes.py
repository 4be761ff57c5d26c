"""Shapes of one device of a reference program, by which its buffers are told apart."""

from __future__ import annotations

from typing import Any

import jax

from prompts_agent.compile.breakdown import Dims, Shapes
from prompts_agent.compile.reference.dtypes import dtype
from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.stacks import stacks
from prompts_agent.compile.reference.step import Step
from prompts_agent.compile.reference.weights import Weight, weights
from prompts_agent.layout.specs import weight_axes

__all__ = ["shapes_of"]

_XLA = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


def shapes_of(frame: Frame, step: Step) -> Shapes:
    """What `breakdown` needs to know of the program."""
    layout, workload = frame.layout, frame.workload
    training = workload.phase.is_training
    over = "pipeline" if training and frame.size("pipeline") > 1 else None
    tree = weights(workload.model, frame.specs, over)
    leaves: list[Weight] = jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, Weight))
    sharded = [_shard(frame, weight.shape, weight.spec) for weight in leaves]
    masters = [frame.master(weight) for weight in leaves]
    sharded += [_shard(frame, master.shape, master.spec) for master in masters]
    gone = {n for axis in weight_axes(layout, training=training) for n in frame.parts(axis)}
    vocab = workload.model.vocab
    cut = frame.axes(frame.specs["activations.logits"][2])
    gradient = dtype(workload.precision.gradients).name
    return Shapes(
        classes=tuple(step.argument_classes()),
        weights=tuple(dict.fromkeys(sharded)),
        gathered=tuple(dict.fromkeys(_gathered(frame, weight, gone) for weight in leaves)),
        cache=() if training else _cache(step),
        periods=tuple({stack.periods for stack in stacks(workload.model) if stack.periods > 1}),
        tokens=_tokens(frame),
        vocab=tuple({vocab, vocab // frame.size(*cut)}),
        gradient_dtype=_XLA.get(gradient, gradient) if training else None,
    )


def _shard(frame: Frame, shape: Dims, spec: Any) -> Dims:
    return tuple(frame.sharding(spec, shape).shard_shape(shape))


def _gathered(frame: Frame, weight: Weight, gone: set[str]) -> Dims:
    """One layer's weight without the axes that cut its embed dim."""
    spec = tuple(
        tuple(axis for axis in frame.axes(entry) if axis not in gone) or None
        for entry in weight.spec
    )
    shard = _shard(frame, weight.shape, spec)
    # Stacked weights have their periods in front, which no spec cuts.
    return shard[1:] if len(shard) > 2 else shard


def _cache(step: Step) -> tuple[Dims, ...]:
    """The cache's shards, whole and one period's."""
    found: list[Dims] = []
    for array in jax.tree.leaves(step.arguments[1]):
        shard = tuple(array.sharding.shard_shape(array.shape))
        found += [shard, shard[1:]]
    return tuple(dict.fromkeys(found))


def _tokens(frame: Frame) -> int:
    """Tokens whose logits one device computes in one forward pass, at least."""
    if not frame.workload.phase.is_training:
        return 1
    return frame.layout.microbatch * frame.workload.sequence // frame.size("context")
