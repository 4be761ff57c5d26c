"""What pipeline stages cost: the bubble, and activations sent from stage to stage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.sizes import Sizes
from prompts_agent.layout.layout import PipelineSchedule
from prompts_agent.layout.table import SCHEDULES, LayoutTable

__all__ = ["bubble", "chunks", "stage_transfer_bytes"]

FloatColumn = NDArray[np.float64]


def chunks(table: LayoutTable) -> FloatColumn:
    """Chunks of layers per stage: `virtual_stages` under the interleaved schedule, else 1."""
    interleaved = table.schedule == SCHEDULES.index(PipelineSchedule.INTERLEAVED)
    return np.where(interleaved, np.maximum(table.virtual_stages, 1), 1).astype(np.float64)


def bubble(table: LayoutTable, z: Sizes) -> FloatColumn:
    """Idle time of a stage ÷ its busy time: `(p - 1) ÷ (m × v)` (arXiv 2104.04473, section 2.2).

    4 stages, 8 microbatches, 1 chunk: 3/8 of the busy time on top. Stages of unequal depth are
    already in `Sizes.layers`, which counts the fullest.
    """
    return (z.pipeline - 1.0) / (z.microbatches * chunks(table))


def stage_transfer_bytes(
    table: LayoutTable, z: Sizes, embed: int, bytes_per_element: float
) -> FloatColumn:
    """Bytes that a stage sends in one microbatch: `2 × T × embed × v`, activations forward and
    their gradients back, at every chunk's border; cut over tensor under sequence_parallel."""
    shards = np.where(table.sequence_parallel, z.tensor, 1.0)
    sent = 2.0 * z.tokens * embed * bytes_per_element * chunks(table) / shards
    return np.where(z.pipeline > 1.0, sent, 0.0)
