"""Seconds that one device computes, for one microbatch of a training step.

Every function returns float64[n] seconds. T is the tokens of one microbatch on one device, t the
tensor degree; forward, backward and recomputation are counted together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Constants
from prompts_agent.estimate.setting import Setting
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.table import REMATS

__all__ = [
    "attention_s",
    "backward_share",
    "elementwise_s",
    "host_s",
    "local_efficiency",
    "logits_s",
    "matmul_s",
    "offloaded_bytes_per_token",
    "optimizer_s",
]

FloatColumn = NDArray[np.float64]

# Passes over the block's matmuls, in units of the forward pass: forward 1, backward 2, and one
# more where the forward pass is run again (arXiv 2205.05198, appendix A).
_PASSES = {Remat.NONE: 3.0, Remat.MINIMAL: 3.0, Remat.FULL: 4.0, Remat.OFFLOAD: 4.0}
# Of the attention's matmuls about half are the projections to q, k and v, which offload keeps.
_PROJECTION_PASSES = _PASSES | {Remat.OFFLOAD: 3.5}
# Flash attention's backward pass recomputes the scores: 5 matmuls for the forward pass's 2
# (Dao, arXiv 2307.08691, section 4.1: 2.5 times). Remat full runs the forward kernel again.
_ATTENTION_PASSES = {Remat.NONE: 3.5, Remat.MINIMAL: 3.5, Remat.FULL: 4.5, Remat.OFFLOAD: 4.5}
# Of what lies between matmuls, norms and the mlp's product are recomputed under minimal too.
_TOUCHES = _PASSES | {Remat.MINIMAL: 3.5}
# Reads and writes of the residual stream outside matmuls in one forward pass: two norms (read,
# write) and two additions (two reads, a write), each over the whole embed dim.
_RESIDUAL_TOUCHES = 10.0


def backward_share(at: Setting) -> FloatColumn:
    """Share of a microbatch's compute that falls into the backward pass, float64[n]."""
    passes = at.by_remat(_PASSES)
    return np.asarray((passes - 1.0) / passes)


def local_efficiency(
    columns: FloatColumn | float, rows: FloatColumn | float, constants: Constants
) -> FloatColumn:
    """Share of peak that a matmul with `rows` tokens and `columns` local outputs reaches.

    `e = e_max × c/(c + h) × r/(r + h)`: the time of a tile that is not full, h the extent at which
    half is lost. With h = 32, 4096 columns keep 99% and 128 columns 80%.
    """
    half = constants.matmul_half_extent
    wide, tall = np.asarray(columns), np.asarray(rows)
    most = min(constants.matmul_efficiency * constants.chip_share, 1.0)
    return np.asarray(most * (wide / (wide + half)) * (tall / (tall + half)))


def matmul_s(at: Setting) -> FloatColumn:
    """The blocks' matmuls: `2 × T × P_active ÷ t` FLOP a forward pass and layer (arXiv 2001.08361,
    section 2.1), at `local_efficiency`, and never faster than the weights are read from HBM.
    """
    arch, z = at.arch, at.sizes
    # Tokens of the expert group, spread over its experts: what one expert's matmul sees.
    rows = z.tokens * z.expert * arch.experts_per_token / max(arch.experts, 1)
    attention, dense = arch.attention_layer_parameters, arch.dense_mlp_layer_parameters
    # The rank with the busiest experts keeps the others waiting.
    uneven = 1.0 + at.constants.expert_imbalance * (1.0 - 1.0 / z.expert)
    projections = _product_s(
        at, attention, attention / z.tensor, arch.heads * arch.head_dim / z.tensor
    )
    mlp = _product_s(at, dense, dense / z.tensor, arch.dense_mlp_width / z.tensor)
    experts = _product_s(
        at,
        arch.active_expert_layer_parameters,
        arch.expert_layer_parameters / (z.expert * z.expert_tensor),
        arch.expert_width / z.expert_tensor,
        rows=rows,
    )
    passes = at.by_remat(_PASSES) * (mlp + uneven * experts / at.constants.grouped_efficiency)
    return z.layers * (passes + at.by_remat(_PROJECTION_PASSES) * projections)


def _product_s(
    at: Setting,
    parameters: float,
    held: FloatColumn,
    width: FloatColumn,
    *,
    rows: FloatColumn | None = None,
) -> FloatColumn:
    """One forward pass of weights of which a token uses `parameters` and a device has `held`."""
    tokens = at.sizes.tokens
    flops = 2.0 * tokens * parameters / at.sizes.tensor
    seen = np.maximum(tokens if rows is None else rows, 1.0)
    share = local_efficiency(np.maximum(width, 1.0), seen, at.constants) * at.narrow_share
    return np.maximum(
        flops / (at.peak_flops_per_s * share), at.element_bytes * held / at.hbm_bytes_per_s
    )


def attention_s(at: Setting) -> FloatColumn:
    """Scores and values: `4 × T × S/2 × heads × head_dim ÷ t` FLOP forward (causal), in a flash
    kernel at `attention_efficiency`; context ranks are taken as balanced (zigzag order).
    """
    arch, z = at.arch, at.sizes
    heads = np.ceil(arch.heads / z.tensor)
    keys = arch.attended_tokens(at.workload.sequence)
    flops = 4.0 * z.tokens * keys * heads * arch.head_dim
    rate = at.wide_flops_per_s * at.constants.attention_efficiency
    split = 1.0 + at.constants.context_split * np.log2(z.context)
    return at.by_remat(_ATTENTION_PASSES) * z.layers * flops * split / rate


def elementwise_s(at: Setting) -> FloatColumn:
    """Norms, additions, rotary embedding and the mlp's product, bound by HBM.

    A forward pass moves `T × (10 residuals + mlp + q + k)` elements, and four more rows for each of
    a token's experts, which permuting the tokens reads and writes; the residual part is repeated
    on every tensor rank unless sequence_parallel cuts it, which is why tensor ranks do not help.
    """
    arch, z = at.arch, at.sizes
    mlp = (arch.mlp_inputs + 1.0) * arch.active_mlp_width / z.tensor
    rotary = 2.0 * (arch.heads + arch.kv_heads) * arch.head_dim / z.tensor
    residual = _RESIDUAL_TOUCHES * arch.embed / at.residual_shards
    # Sorted by expert, and back: each token's copies are read and written, twice.
    sorted_rows = 4.0 * arch.experts_per_token * arch.expert_layer_share * arch.embed
    residual = residual + sorted_rows / np.where(at.table.expert_divides, z.tensor, 1.0)
    moved = at.element_bytes * z.tokens * z.layers * (residual + mlp + rotary)
    return at.by_remat(_TOUCHES) * moved / at.hbm_bytes_per_s


def host_s(at: Setting) -> FloatColumn:
    """Offloaded activations on their way to the host and back: each layer's input, q, k and v."""
    z = at.sizes
    rate = at.chip.host_link_bandwidth_bytes_per_s
    offloads = at.table.remat == REMATS.index(Remat.OFFLOAD)
    if rate is None or not np.any(offloads):
        return np.zeros_like(z.tokens)
    held = offloaded_bytes_per_token(at)
    moved = 2.0 * z.tokens * z.layers * held / (rate * at.constants.host_efficiency)
    return np.where(offloads, moved, 0.0)


def offloaded_bytes_per_token(at: Setting) -> FloatColumn:
    """Bytes of one token and layer that `offload` moves: the input, q, k and v.

    llama3-8b: (4096 + 4096 + 2 x 1024) x 2 = 20,480; XLA put 15.0 GiB on the host for 24,576 tokens
    and 32 layers.
    """
    arch, z = at.arch, at.sizes
    queries = arch.heads * arch.head_dim / z.tensor
    keys = 2.0 * arch.kv_heads * arch.head_dim / z.kv_tensor
    return at.element_bytes * (arch.embed / at.residual_shards + queries + keys)


def logits_s(at: Setting) -> FloatColumn:
    """The output table's matmuls, `3 × 2 × T × embed × vocab ÷ t` FLOP, and the softmax's passes
    over `T × vocab ÷ t` logits: written, read, gradient written and read twice.
    """
    tokens, width = at.sizes.tokens, at.arch.vocab / at.sizes.tensor
    share = local_efficiency(width, tokens, at.constants)
    matmul = 6.0 * tokens * at.arch.embed * width / (at.wide_flops_per_s * share)
    moved = 5.0 * tokens * width * at.element_bytes
    return np.asarray(matmul + moved / at.hbm_bytes_per_s)


def optimizer_s(at: Setting, state_bytes: FloatColumn, gradient_bytes: FloatColumn) -> FloatColumn:
    """The optimizer's step: weights and state are read and written, gradients read, from HBM."""
    return (2.0 * state_bytes + gradient_bytes) / at.hbm_bytes_per_s
