"""Remat: which activations the backward pass finds, by the policy's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from prompts_agent.layout.layout import Remat

__all__ = ["SAVED", "rematted"]

SAVED = ("q", "k", "v", "attention", "projection", "mlp")
"""What `minimal` keeps of a layer besides its input: the outputs of its matmuls."""
OFFLOADED = ("q", "k", "v")
"""What `offload` moves to the host of a layer; its input stays, as a scan carries it."""


def rematted(layer: Callable[..., Any], remat: Remat) -> Callable[..., Any]:
    """`layer`, recomputed in the backward pass as the policy says."""
    if remat is Remat.NONE:
        return layer
    policies = jax.checkpoint_policies
    if remat is Remat.OFFLOAD:
        policy = policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[],
            names_which_can_be_offloaded=list(OFFLOADED),
            offload_src="device",
            offload_dst="pinned_host",
        )
    elif remat is Remat.FULL:
        policy = policies.nothing_saveable
    else:
        policy = policies.save_only_these_names(*SAVED)
    # Inside a scan the compiler cannot merge the recomputation with the first pass anyway.
    return jax.checkpoint(layer, policy=policy, prevent_cse=False)
