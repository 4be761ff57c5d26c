"""Bytes of a tensor of the parameters' size on one device, under each layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.setting import Setting

__all__ = ["parameter_bytes"]

FloatColumn = NDArray[np.float64]


def parameter_bytes(
    at: Setting,
    bytes_per_parameter: float,
    *,
    copies: FloatColumn | float = 1.0,
    expert_copies: FloatColumn | float = 1.0,
) -> FloatColumn:
    """float64[n], `P × bytes ÷ (p × t × shards × copies)`, where `copies` is over how many copies
    of the weights the tensor is cut besides.

    Layers lie on stages; norms and other small parameters are whole on every device of a stage.
    """
    arch, z = at.arch, at.sizes
    dense = z.layers * arch.dense_layer_parameters / (z.tensor * z.gathered_shards * copies)
    experts = z.layers * arch.expert_layer_parameters
    experts = experts / (z.expert * z.expert_tensor * z.expert_gathered_shards * expert_copies)
    tables = arch.embedding_parameters / (z.tensor * z.gathered_shards * copies)
    # With a pipeline the two tables lie on different stages; a tied one is on both.
    held = np.where((z.pipeline > 1.0) & (not arch.tied), tables / 2.0, tables)
    small = z.layers * arch.small_layer_parameters
    return bytes_per_parameter * (dense + experts + held + small)
