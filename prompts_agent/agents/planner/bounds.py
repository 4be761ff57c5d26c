"""Bounds: what a layout leaves free and what it ties down, as numbers of the layout itself."""

from __future__ import annotations

from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.layout.layout import Layout, PipelineSchedule
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Workload

__all__ = ["batch_unit", "bounds", "headroom", "kv_copies", "vocab_padding"]


def headroom(candidate: Candidate) -> float:
    """Share of usable HBM that the upper memory estimate leaves; below zero, it may not fit."""
    limit = candidate.predicted.hbm_limit_bytes
    return 1.0 - candidate.hbm_high_bytes / limit if limit > 0 else 0.0


def batch_unit(layout: Layout) -> int:
    """Training: the global batch is a multiple of this many sequences.

    An interleaved pipeline takes whole rounds: data 8 with 4 stages takes multiples of 32.
    """
    interleaved = layout.schedule is PipelineSchedule.INTERLEAVED
    return layout.batch_shards * (layout.mesh.size(Axis.PIPELINE) if interleaved else 1)


def kv_copies(layout: Layout, workload: Workload) -> int:
    """Tensor ranks that hold the same KV head; 1 where each is held once, or there are none."""
    if workload.model.mla is not None:
        return 1
    ranks = layout.mesh.size(Axis.TENSOR) // layout.attention_data
    return max(1, -(-ranks // workload.model.kv_heads))


def vocab_padding(layout: Layout, workload: Workload) -> int:
    """Rows that the vocabulary lacks to come out even over tensor."""
    return -workload.model.vocab % layout.mesh.size(Axis.TENSOR)


def bounds(candidate: Candidate, workload: Workload | None) -> dict[str, str]:
    """Name → text, for placeholders `layout:NAME`."""
    layout, free = candidate.layout, headroom(candidate)
    found = {"headroom": f"{100 * free:.0f} %"}
    if workload is None:
        return found
    found["kv_copies"] = str(kv_copies(layout, workload))
    found["kv_heads"] = str(workload.model.kv_heads)
    found["vocab_padding"] = str(vocab_padding(layout, workload))
    if workload.phase.is_training:
        unit, batch = batch_unit(layout), workload.global_batch
        found["batch_unit"] = str(unit)
        found["next_batch"] = str((batch // unit + 1) * unit)
    return found
