"""Stacks: a model's layers as runs of equal periods, each of which one `scan` goes over.

A model whose layers are all alike is one stack of `layers` periods of one layer. Mixtures with a
dense start (DeepSeek) are two stacks; one with experts in every second layer has periods of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from prompts_agent.model.spec import ModelSpec

__all__ = ["LayerKind", "Stack", "encoder_stacks", "stacks"]


@dataclass(frozen=True, slots=True)
class LayerKind:
    """What makes a layer different: experts or a dense mlp, all of the past or a window of it."""

    experts: bool
    window: int | None


@dataclass(frozen=True, slots=True)
class Stack:
    """`periods` repetitions of the layers `kinds`; weights are stacked over the periods."""

    kinds: tuple[LayerKind, ...]
    periods: int


def stacks(model: ModelSpec) -> tuple[Stack, ...]:
    """Dense layers that come first, then whole periods, then what is left of the last one."""
    kinds = [_kind(model, index) for index in range(model.layers)]
    first = model.moe.dense_layers if model.moe is not None else 0
    period = math.lcm(model.moe.every if model.moe else 1, model.global_every or 1)
    found = []
    for start, stop in ((0, first), (first, model.layers)):
        whole = (stop - start) // period
        if whole:
            found.append(Stack(tuple(kinds[start : start + period]), whole))
        rest = kinds[start + whole * period : stop]
        if rest:
            found.append(Stack(tuple(rest), 1))
    return tuple(found)


def encoder_stacks(model: ModelSpec) -> tuple[Stack, ...]:
    """An encoder's layers, which are all alike; none for a decoder alone."""
    if not model.encoder_layers:
        return ()
    return (Stack((LayerKind(experts=False, window=None),), model.encoder_layers),)


def _kind(model: ModelSpec, index: int) -> LayerKind:
    moe = model.moe
    experts = moe is not None and index >= moe.dense_layers and (index + 1) % moe.every == 0
    every = model.global_every
    whole = model.sliding_window is None or (every is not None and (index + 1) % every == 0)
    return LayerKind(experts=experts, window=None if whole else model.sliding_window)
