"""Activations that a layer keeps of a token for its backward pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.compute import offloaded_bytes_per_token
from prompts_agent.estimate.setting import Setting
from prompts_agent.layout.layout import Remat

__all__ = ["activation_bytes_per_token"]

FloatColumn = NDArray[np.float64]


def activation_bytes_per_token(at: Setting, remat: Remat) -> FloatColumn:
    """Bytes that one layer keeps of one token for its backward pass.

    After Korthikanti et al., arXiv 2205.05198, section 4, for a pre-norm block with flash
    attention and without dropout: `none` keeps both norms' inputs and outputs, q, k, v, the
    attention's output and its fp32 row sums, and the mlp's matmul outputs and product (jax keeps
    more, what its differentiation rules ask for: 183 KB a token and layer of qwen3-8b by XLA's
    report for v6e-8, 2 x 2048 tokens, for the 127 KB of fused kernels); `minimal`
    (matmul outputs) keeps the block's input, q, k, v, attention output, projection, and the mlp's
    outputs; `full` keeps the block's input; `offload` keeps two layers' input, q, k and v, the rest
    being with the host. The residual stream is whole on every tensor rank
    unless sequence_parallel cuts it.
    """
    arch, z, size = at.arch, at.sizes, at.element_bytes
    residual = arch.embed / at.residual_shards
    if remat is Remat.OFFLOAD:
        # Two layers' worth at a time: one leaves or comes while another is worked on.
        return 2.0 * offloaded_bytes_per_token(at) / z.layers
    if remat is Remat.FULL:
        return size * residual
    heads = 2.0 * arch.heads * arch.head_dim / z.tensor
    keys = 2.0 * arch.kv_heads * arch.head_dim / z.kv_tensor
    mlp = arch.active_mlp_width / z.tensor
    sums = 4.0 * arch.heads / z.tensor
    if remat is Remat.MINIMAL:
        return size * (3.0 * residual + heads + keys + arch.mlp_inputs * mlp) + sums
    if at.compiled:
        # Before and after the rotary embedding, the norms' fp32 inputs, and the activation's slope.
        heads, keys = 1.5 * heads, 2.0 * keys
        return size * (6.0 * residual + heads + keys + (arch.mlp_inputs + 2.0) * mlp) + sums
    return size * (4.0 * residual + heads + keys + (arch.mlp_inputs + 1.0) * mlp) + sums
