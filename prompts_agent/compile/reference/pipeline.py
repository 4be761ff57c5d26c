"""Pipeline: layers cut into stages, microbatches passed from stage to stage.

One program for all devices, as jax frameworks write it: a dim of stages lies over the pipeline
axis, a step runs every stage at once on its own microbatch, and a roll hands the results on, which
the compiler makes a permute. Microbatches go in rounds of as many as there are stages, so that no
more of them are in flight than under 1F1B (arXiv 2104.04473, section 2.2); the bubble between
rounds is not that schedule's.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from prompts_agent.compile.reference.block import Tree, normed
from prompts_agent.compile.reference.forward import embedded, layer_scan
from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.stacks import stacks
from prompts_agent.layout.layout import Remat

__all__ = ["pipelined"]

_AXIS = "pipeline"


def pipelined(frame: Frame, params: Tree, tokens: jax.Array, remat: Remat) -> jax.Array:
    """Tokens [m, b, s] of a round's microbatches → [m, b, s, embed] before the output table."""
    stages, (count, batch, sequence) = frame.size(_AXIS), tokens.shape
    positions = jnp.broadcast_to(jnp.arange(sequence)[None], (batch, sequence))
    (stack,) = stacks(frame.workload.model)
    tables = {name: params[name] for name in ("embedding", "positions") if name in params}
    run = layer_scan(frame, stack, positions, remat)
    weight = jax.tree.map(lambda w: w.reshape(stages, -1, *w.shape[1:]), params["layers"][0])
    every_stage = jax.vmap(run, spmd_axis_name=_AXIS)
    # A scan would keep every tick's one-hot tokens, a vocab wide, for the backward pass.
    enter = jax.checkpoint(
        lambda table, ids: embedded(frame, table, ids, positions), prevent_cse=False
    )
    state = jnp.zeros((stages, batch, sequence, frame.workload.model.embed), frame.compute)

    def tick(state: jax.Array, at: jax.Array) -> tuple[jax.Array, jax.Array]:
        entering = lax.dynamic_index_in_dim(tokens, jnp.minimum(at, count - 1), 0, keepdims=False)
        first = enter(tables, entering)
        state = _held(frame, jnp.roll(state, 1, axis=0).at[0].set(first))
        state = _held(frame, every_stage(state, weight))
        return state, state[stages - 1]

    ticks: Any = jnp.arange(count + stages - 1)
    _, leaving = lax.scan(tick, _held(frame, state), ticks)
    return normed(frame.workload.model, params["norm"], leaving[stages - 1 :])


def _held(frame: Frame, state: jax.Array) -> jax.Array:
    return frame.hold(state, (_AXIS, *frame.specs["activations"]))
