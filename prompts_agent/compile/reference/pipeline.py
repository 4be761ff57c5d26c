"""Pipeline: layers cut into stages, a microbatch passed from stage to stage.

One program for all devices, as jax frameworks write it: a dim of stages lies over the pipeline
axis, a tick runs every stage at once, and a roll hands the results on, which the compiler makes a
permute. Of the microbatches in flight, every stage keeps what the backward pass wants of as many
ticks as there are stages. That is what the first stage keeps under 1F1B (arXiv 2104.04473, section
2.2) if one microbatch goes through at a time; each tick then has one stage with work, so the time
of this program is not that of a pipeline.
"""

from __future__ import annotations

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
    """Tokens [b, s] of a microbatch → [b, s, embed] before the output table."""
    stages, (batch, sequence) = frame.size(_AXIS), tokens.shape
    positions = jnp.broadcast_to(jnp.arange(sequence)[None], (batch, sequence))
    (stack,) = stacks(frame.workload.model)
    run = layer_scan(frame, stack, positions, remat)
    weight = jax.tree.map(lambda w: w.reshape(stages, -1, *w.shape[1:]), params["layers"][0])
    every_stage = jax.vmap(run, spmd_axis_name=_AXIS)
    first = embedded(frame, params, tokens, positions)
    empty = jnp.zeros((stages, *first.shape), first.dtype)

    def tick(state: jax.Array, at: jax.Array) -> tuple[jax.Array, None]:
        state = _held(frame, every_stage(state, weight))
        # What leaves the last stage is the result, and comes in nowhere again.
        handed = jnp.roll(state, 1, axis=0)
        return jnp.where(at == stages - 1, state, _held(frame, handed)), None

    state, _ = lax.scan(tick, _held(frame, empty.at[0].set(first)), jnp.arange(stages))
    return normed(frame.workload.model, params["norm"], state[stages - 1])


def _held(frame: Frame, state: jax.Array) -> jax.Array:
    return frame.hold(state, (_AXIS, *frame.specs["activations"]))
