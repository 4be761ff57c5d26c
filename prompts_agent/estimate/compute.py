"""Seconds that one device computes, for one microbatch of a training step.

Every function returns float64[n] seconds. T is the tokens of one microbatch on one device, t the
tensor degree; forward, backward and recomputation are counted together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.architecture import Architecture
from prompts_agent.estimate.calibration import Constants
from prompts_agent.estimate.sizes import Sizes, dtype_bytes
from prompts_agent.hardware.chip import Chip
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.table import REMATS, LayoutTable
from prompts_agent.workload.workload import Precision

__all__ = [
    "attention_s",
    "backward_share",
    "elementwise_s",
    "local_efficiency",
    "logits_s",
    "matmul_s",
    "optimizer_s",
    "peak_flops_per_s",
]

FloatColumn = NDArray[np.float64]

# Passes over the block's matmuls, in units of the forward pass: forward 1, backward 2, and one
# more where the forward pass is run again (arXiv 2205.05198, appendix A).
_PASSES = {Remat.NONE: 3.0, Remat.MINIMAL: 3.0, Remat.FULL: 4.0}
# Flash attention's backward pass recomputes the scores: 5 matmuls for the forward pass's 2
# (Dao, arXiv 2307.08691, section 4.1: 2.5 times). Remat full runs the forward kernel again.
_ATTENTION_PASSES = {Remat.NONE: 3.5, Remat.MINIMAL: 3.5, Remat.FULL: 4.5}
# Reads and writes of the residual stream outside matmuls in one forward pass: two norms (read,
# write) and two additions (two reads, a write), each over the whole embed dim.
_RESIDUAL_TOUCHES = 10.0


def peak_flops_per_s(chip: Chip, dtype: str) -> float:
    """Peak of the matrix unit for `dtype`, or for bf16 (fp16, fp32) where the chip has no faster."""
    for name in (dtype, "bf16", "fp16", "fp32"):
        if name in chip.peak_flops:
            return float(chip.peak_flops[name])
    return float(max(chip.peak_flops.values()))


def backward_share(table: LayoutTable) -> FloatColumn:
    """Share of a microbatch's compute that falls into the backward pass, float64[n]."""
    passes = np.array([_PASSES[remat] for remat in REMATS])[table.remat]
    return (passes - 1.0) / passes


def local_efficiency(columns: FloatColumn, rows: FloatColumn, constants: Constants) -> FloatColumn:
    """Share of peak that a matmul with `rows` tokens and `columns` local outputs reaches.

    `e = e_max × c/(c + h) × r/(r + h)`: the time of a tile that is not full, h the extent at which
    half is lost. 4096 columns with h = 64 keep 98%, 128 columns 67%.
    """
    half = constants.matmul_half_extent
    return constants.matmul_efficiency * (columns / (columns + half)) * (rows / (rows + half))


def matmul_s(
    table: LayoutTable, arch: Architecture, z: Sizes, chip: Chip, precision: Precision,
    constants: Constants,
) -> FloatColumn:
    """The blocks' matmuls: `2 × T × P_active ÷ t` FLOP a forward pass and layer (arXiv 2001.08361,
    section 2.1), at `local_efficiency`, and never faster than the weights are read from HBM."""
    passes = np.array([_PASSES[remat] for remat in REMATS])[table.remat]
    peak = peak_flops_per_s(chip, precision.compute)
    size = dtype_bytes(precision.compute)
    hbm = chip.hbm_bandwidth_bytes_per_s * constants.hbm_efficiency

    def part(parameters: float, held: FloatColumn, width: FloatColumn, rows: FloatColumn) -> FloatColumn:
        flops = 2.0 * z.tokens * parameters / z.tensor
        compute = flops / (peak * local_efficiency(width, rows, constants))
        return np.maximum(compute, size * held / hbm)

    attention = part(
        arch.attention_layer_parameters,
        arch.attention_layer_parameters / z.tensor,
        arch.heads * arch.head_dim / z.tensor,
        z.tokens,
    )
    mlp = part(
        arch.dense_mlp_layer_parameters,
        arch.dense_mlp_layer_parameters / z.tensor,
        np.maximum(arch.dense_mlp_width / z.tensor, 1.0),
        z.tokens,
    )
    held = arch.expert_layer_parameters / (z.expert * z.expert_tensor)
    # Tokens of the expert group, spread over its experts: what one expert's matmul sees.
    rows = z.tokens * z.expert * arch.experts_per_token / max(arch.experts, 1)
    experts = part(
        arch.active_expert_layer_parameters,
        held,
        np.maximum(arch.expert_width / z.expert_tensor, 1.0),
        np.maximum(rows, 1.0),
    )
    return passes * z.layers * (attention + mlp + experts)


def attention_s(
    table: LayoutTable, arch: Architecture, z: Sizes, chip: Chip, precision: Precision,
    constants: Constants, *, sequence: int,
) -> FloatColumn:
    """Scores and values: `4 × T × S/2 × heads × head_dim ÷ t` FLOP forward (causal), in a flash
    kernel at `attention_efficiency`; context ranks are taken as balanced (zigzag order)."""
    passes = np.array([_ATTENTION_PASSES[remat] for remat in REMATS])[table.remat]
    heads = np.ceil(arch.heads / z.tensor)
    flops = 4.0 * z.tokens * arch.attended_tokens(sequence) * heads * arch.head_dim
    rate = peak_flops_per_s(chip, precision.compute) * constants.attention_efficiency
    return passes * z.layers * flops / rate


def elementwise_s(
    table: LayoutTable, arch: Architecture, z: Sizes, chip: Chip, precision: Precision,
    constants: Constants,
) -> FloatColumn:
    """Norms, additions, rotary embedding and the mlp's product, bound by HBM.

    A forward pass moves `T × (10 residuals + mlp + q + k)` elements; the residual part is repeated
    on every tensor rank unless sequence_parallel cuts it, which is why tensor ranks do not help.
    """
    passes = np.array([_PASSES[remat] for remat in REMATS])[table.remat]
    shards = np.where(table.sequence_parallel, z.tensor, 1.0)
    mlp = (arch.mlp_inputs + 1.0) * arch.active_mlp_width / z.tensor
    rotary = 2.0 * (arch.heads + arch.kv_heads) * arch.head_dim / z.tensor
    elements = z.tokens * (_RESIDUAL_TOUCHES * arch.embed / shards + mlp + rotary)
    moved = dtype_bytes(precision.compute) * elements * z.layers
    return passes * moved / (chip.hbm_bandwidth_bytes_per_s * constants.hbm_efficiency)


def logits_s(
    arch: Architecture, z: Sizes, chip: Chip, precision: Precision, constants: Constants
) -> FloatColumn:
    """The output table's matmuls, `3 × 2 × T × embed × vocab ÷ t` FLOP, and the softmax's passes
    over `T × vocab ÷ t` logits: written, read, gradient written and read twice."""
    width = arch.vocab / z.tensor
    peak = peak_flops_per_s(chip, precision.compute)
    flops = 6.0 * z.tokens * arch.embed * width
    matmul = flops / (peak * local_efficiency(width, z.tokens, constants))
    moved = 5.0 * z.tokens * width * dtype_bytes(precision.compute)
    return matmul + moved / (chip.hbm_bandwidth_bytes_per_s * constants.hbm_efficiency)


def optimizer_s(
    state_bytes: FloatColumn, gradient_bytes: FloatColumn, chip: Chip, constants: Constants
) -> FloatColumn:
    """The optimizer's step: weights and state are read and written, gradients read, from HBM."""
    moved = 2.0 * state_bytes + gradient_bytes
    return moved / (chip.hbm_bandwidth_bytes_per_s * constants.hbm_efficiency)
