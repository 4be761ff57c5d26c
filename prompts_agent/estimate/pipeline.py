"""What pipeline stages cost: the bubble, and activations sent from stage to stage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.setting import Setting
from prompts_agent.layout.layout import PipelineSchedule
from prompts_agent.layout.table import SCHEDULES, LayoutTable

__all__ = ["bubble", "chunks", "stage_transfer_bytes", "tail_microbatches"]

FloatColumn = NDArray[np.float64]


def chunks(table: LayoutTable) -> FloatColumn:
    """Chunks of layers per stage: `virtual_stages` under the interleaved schedule, else 1."""
    interleaved = table.schedule == SCHEDULES.index(PipelineSchedule.INTERLEAVED)
    return np.where(interleaved, np.maximum(table.virtual_stages, 1), 1).astype(np.float64)


def bubble(at: Setting) -> FloatColumn:
    """Idle time of a stage ÷ its busy time: `(p - 1) ÷ (m × v)` (arXiv 2104.04473, section 2.2).

    4 stages, 8 microbatches, 1 chunk: 3/8 of the busy time on top. Stages of unequal depth are
    already in `Sizes.layers`, which counts the fullest.
    """
    return (at.sizes.pipeline - 1.0) / (at.sizes.microbatches * chunks(at.table))


def stage_transfer_bytes(at: Setting) -> FloatColumn:
    """Bytes that a stage sends in one microbatch: `2 × T × embed × v`, activations forward and
    their gradients back, at every chunk's border; cut over tensor under sequence_parallel, and on
    GPUs always.
    """
    sent = 2.0 * at.sizes.tokens * at.arch.embed * at.element_bytes * chunks(at.table)
    # On GPUs tensor ranks send a part each, gathered inside the domain (arXiv 2104.04473, 4.1).
    shards = np.where(at.links.switched, at.sizes.tensor, at.residual_shards)
    return np.where(at.sizes.pipeline > 1.0, sent / shards, 0.0)


def tail_microbatches(at: Setting) -> FloatColumn:
    """Backward passes, of a whole stage each, after the first gradients of a step are complete.

    One without chunks: gradients add up until the last microbatch. The interleaved schedule takes
    p microbatches through a chunk before it turns to the next (arXiv 2104.04473, section 2.2), so
    the last chunk's are complete when `p × (v - 1) ÷ v` passes are still to come: 8 stages of 12
    chunks leave 7.3.
    """
    parts = chunks(at.table)
    group = np.minimum(at.sizes.pipeline, at.sizes.microbatches)
    return np.maximum(group * (parts - 1.0) / parts, 1.0)
