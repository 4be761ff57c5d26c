"""Small or badly tiled matmuls: dims that fill the matrix unit's tiles only in part."""

from __future__ import annotations

import math

from prompts_agent.agents.analyst.cite import finding, period_s, sentence
from prompts_agent.agents.finding import Finding
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import OpUse, Profile
from prompts_agent.workload.axis_names import axis_named
from prompts_agent.workload.workload import Workload

__all__ = ["WASTE_SHARE", "detect", "tile", "tile_waste", "wasted_s"]

WASTE_SHARE = 0.03
"""Of the step, summed over matmuls. Padding the last tile of a few odd dims costs about one."""

_WIDE_TILES = frozenset({"v6e", "tpu7x"})
"""Chips whose systolic array is 256 × 256 (Trillium and Ironwood); earlier TPUs have 128 × 128."""


def tile(device_kind: str | None) -> int:
    """Side of the matrix unit's tile. 128 for GPUs as well: the smaller side of the thread-block
    tiles that cuBLAS and hipBLASLt choose for large matmuls.
    """
    return 256 if device_kind in _WIDE_TILES else 128


def tile_waste(n: int, k: int, side: int) -> float:
    """Share of a matmul's tiles that is padding: n = 192, k = 256, side 128 → 1 − 192 ÷ 256 = 0.25.

    Only the weight's dims count: rows (m) stream through the array and need no multiple of it.
    """
    filled = 1.0
    for dim in (n, k):
        filled *= dim / (math.ceil(dim / side) * side)
    return 1.0 - filled


def wasted_s(op: OpUse, side: int) -> float:
    """Seconds of that op spent on padding; 0 for what is no matmul."""
    if op.dot_dims is None or min(op.dot_dims) < 1:
        return 0.0
    _, n, k = op.dot_dims
    return op.total_s * tile_waste(n, k, side)


def detect(profile: Profile, workload: Workload | None) -> list[Finding]:
    """One finding for all matmuls together, where padding takes a part of the step worth curing."""
    period = period_s(profile)
    side = tile(profile.device_kind)
    seconds = sum(wasted_s(op, side) for op in profile.top_ops)
    if period is None or seconds <= WASTE_SHARE * period:
        return []
    cut_by_mesh = _cut_by_tensor(profile, workload)
    cure = (
        "A smaller tensor axis leaves larger matmuls on each device."
        if cut_by_mesh
        else "The model's own dims do not fill the tiles: pad heads, mlp or vocab to multiples, or "
        "choose a kernel with smaller tiles."
    )
    return [
        finding(
            profile,
            FindingKind.SMALL_MATMULS,
            title=sentence(
                profile,
                "Matmuls spend {fact:derived.matmul.padding_time} of each step on padding up to "
                "tiles of {fact:derived.matmul.tile}",
                "Matmuls spend part of each step on padding up to whole tiles",
            ),
            detail=cure,
            is_sharding=cut_by_mesh,
            fact_ids=("derived.matmul.padding_time", "derived.matmul.tile", "step_time"),
            seconds=seconds,
            axis=Axis.TENSOR.value if cut_by_mesh else None,
        )
    ]


def _cut_by_tensor(profile: Profile, workload: Workload | None) -> bool:
    if workload is not None and workload.baseline is not None:
        return workload.baseline.mesh.size(Axis.TENSOR) > 1
    return any(a.size > 1 and axis_named(a.name) is Axis.TENSOR for a in profile.mesh)
