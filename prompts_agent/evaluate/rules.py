"""Rules of thumb that people choose a layout by, as baselines.

A rule sees the legal layouts, the workload, and which of them fit; never a time. It returns the
rows that it cannot tell apart, and its score is the mean over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.model.count import parameters
from prompts_agent.workload.workload import Workload

__all__ = ["RULES", "RULE_SOURCES", "Rule"]

IntColumn = NDArray[np.int64]
FloatColumn = NDArray[np.float64]
Rule = Callable[[LayoutTable, Workload, NDArray[np.bool_]], IntColumn]

# Megatron-Bridge's starting points for dense models: parameters up to, ranges of tensor, pipeline
# and context.
_BRIDGE_DENSE: tuple[tuple[float, tuple[int, int], tuple[int, int], tuple[int, int]], ...] = (
    (1e9, (1, 1), (1, 1), (1, 1)),
    (10e9, (2, 4), (1, 1), (1, 1)),
    (70e9, (4, 8), (2, 4), (1, 1)),
    (175e9, (8, 8), (4, 8), (1, 1)),
    (math.inf, (8, 8), (8, 16), (2, 2)),
)

RULE_SOURCES = {
    "smallest tensor": "common advice for serving and training: the smallest tensor degree that "
    "fits, then the shortest pipeline, then the smallest context degree",
    "fsdp first": "common advice of FSDP and MaxText users: all ranks to fsdp (to sharded data "
    "where the framework has no fsdp), other axes only where it does not fit",
    "megatron-bridge": "starting points by model size, NVIDIA/skills, "
    "nemo-mbridge-perf-parallelism-strategies/SKILL.md (Apache-2.0): dense below 1B data alone, to "
    "10B tensor 2-4, to 70B tensor 4-8 and pipeline 2-4, to 175B tensor 8 and pipeline 4-8, beyond "
    "tensor 8, pipeline 8-16 and context 2; experts: tensor 1-2, expert as large as 64 ranks and "
    "the experts allow, then the shortest pipeline",
}
"""What each rule says, and who says it."""


def _smallest_tensor(table: LayoutTable, workload: Workload, fits: NDArray[np.bool_]) -> IntColumn:
    del workload
    axes = (Axis.TENSOR, Axis.PIPELINE, Axis.CONTEXT)
    return _least(_fitting(fits), [table.size(axis) for axis in axes])


def _fsdp_first(table: LayoutTable, workload: Workload, fits: NDArray[np.bool_]) -> IntColumn:
    del workload
    sharded = table.size(Axis.FSDP)
    data = table.size(Axis.DATA)
    others = (Axis.TENSOR, Axis.PIPELINE, Axis.CONTEXT, Axis.EXPERT)
    keys = [-sharded, -data, -table.zero_stage, *(table.size(axis) for axis in others)]
    return _least(_fitting(fits), keys)


def _megatron_bridge(table: LayoutTable, workload: Workload, fits: NDArray[np.bool_]) -> IntColumn:
    tensor, pipeline = table.size(Axis.TENSOR), table.size(Axis.PIPELINE)
    context, expert = table.size(Axis.CONTEXT), table.size(Axis.EXPERT)
    if workload.model.moe is not None:
        wanted = np.minimum(expert, min(workload.model.moe.experts, 64))
        keys: list[NDArray[np.int64] | FloatColumn] = [_outside(tensor, (1, 2)), -wanted]
        return _least(_fitting(fits), [*keys, pipeline, context, tensor])
    total = parameters(workload.model).total
    _, tensors, pipelines, contexts = next(entry for entry in _BRIDGE_DENSE if total <= entry[0])
    away = _outside(tensor, tensors) + _outside(pipeline, pipelines) + _outside(context, contexts)
    return _least(_fitting(fits), [away, tensor * pipeline, tensor])


RULES: dict[str, Rule] = {
    "smallest tensor": _smallest_tensor,
    "fsdp first": _fsdp_first,
    "megatron-bridge": _megatron_bridge,
}


def _fitting(fits: NDArray[np.bool_]) -> IntColumn:
    """Rows to choose among: those that fit, or all where none does."""
    rows = np.flatnonzero(fits)
    return rows if len(rows) else np.arange(len(fits))


def _outside(degrees: IntColumn, wanted: tuple[int, int]) -> FloatColumn:
    """Doublings between a degree and the nearest of the range."""
    low, high = wanted
    return np.abs(np.log2(degrees / np.clip(degrees, low, high)))


def _least(rows: IntColumn, keys: Sequence[NDArray[np.int64] | FloatColumn]) -> IntColumn:
    """The rows whose keys are smallest, the first key first."""
    for key in keys:
        values = key[rows]
        rows = rows[values <= values.min() + 1e-9]
    return rows
