"""Preference: what those who adopt layouts know and the formulas lack, as a small bias of ranking.

Predicted times stay as they are. Only the order is made by `time × exp(weights · features)`: an
axis that the software serves badly, or that people avoid for reasons no formula here has (code
paths that are seldom run, failures, tuning that a framework has for one kind of mesh). The weights
are a conditional logit over the meshes of the development cases (McFadden, 1974), shrunk towards 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Calibration
from prompts_agent.estimate.stack import stack_of
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.chip import Torus
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Workload

__all__ = ["FEATURES", "MOST", "bounded", "features", "preference"]

FloatColumn = NDArray[np.float64]

MOST = 0.4
"""A mesh is held back by this at most: rare ones are all rare, and time decides between them."""

# Tokens of a sequence on one context rank from which on the axis is usual, and tokens of a step on
# one device from which on a tensor axis is not.
_LONG = 4096.0
_MANY = 8192.0
# Ranks of a group that most frameworks are tuned for: a node's for tensor, 16 nodes' for fsdp.
_NODE = 8.0
_FAR = 128.0
# Stages that schedules are usually run with.
_STAGES = 8.0


def _log(table: LayoutTable, axis: Axis) -> FloatColumn:
    return np.asarray(np.log2(table.size(axis).astype(np.float64)))


def _used(table: LayoutTable, axis: Axis) -> FloatColumn:
    return np.asarray(table.size(axis) > 1, dtype=np.float64)


def _axes(table: LayoutTable, _: Workload) -> FloatColumn:
    """How many axes are above 1: of meshes that are as fast, the simplest is taken."""
    return np.asarray(sum(_used(table, axis) for axis in Axis))


def _context_short(table: LayoutTable, workload: Workload) -> FloatColumn:
    """Doublings by which a context rank's part of a sequence falls short of 4096 tokens."""
    missing = np.log2(_LONG / workload.sequence) + _log(table, Axis.CONTEXT)
    return np.asarray(_used(table, Axis.CONTEXT) * np.maximum(missing, 0.0))


def _tensor_near(table: LayoutTable, _: Workload) -> FloatColumn:
    """Doublings of tensor up to 8."""
    return np.asarray(np.minimum(_log(table, Axis.TENSOR), np.log2(_NODE)))


def _tensor_wide(table: LayoutTable, _: Workload) -> FloatColumn:
    """Doublings of tensor beyond 8."""
    return np.asarray(np.maximum(_log(table, Axis.TENSOR) - np.log2(_NODE), 0.0))


def _tensor_torus(table: LayoutTable, workload: Workload) -> FloatColumn:
    """Doublings of tensor on a torus of three dims, where it has one and leaves two to fsdp."""
    link = find_chip(workload.topology.chip).link
    three = isinstance(link, Torus) and link.dims == 3
    return _log(table, Axis.TENSOR) * float(three)


def _tensor_thick(table: LayoutTable, workload: Workload) -> FloatColumn:
    """Doublings of tensor up to 8, times those of a device's tokens beyond 8192, two at most: where
    a device has many tokens, other axes have work enough to hide their traffic.
    """
    tokens = workload.global_batch * workload.sequence / workload.topology.devices
    return _tensor_near(table, workload) * float(np.clip(np.log2(tokens / _MANY), -2.0, 2.0))


def _fsdp_crosses(table: LayoutTable, _: Workload) -> FloatColumn:
    """Weights are gathered across fast domains."""
    return np.asarray(table.dcn[:, list(Axis).index(Axis.FSDP)] > 1, dtype=np.float64)


def _fsdp_far(table: LayoutTable, _: Workload) -> FloatColumn:
    """Doublings of fsdp beyond 128, where copies of shards (data) become usual."""
    return np.asarray(np.maximum(_log(table, Axis.FSDP) - np.log2(_FAR), 0.0))


def _pipeline_long(table: LayoutTable, _: Workload) -> FloatColumn:
    """Doublings of pipeline beyond 8."""
    return np.asarray(np.maximum(_log(table, Axis.PIPELINE) - np.log2(_STAGES), 0.0))


_COLUMNS: dict[str, Callable[[LayoutTable, Workload], FloatColumn]] = {
    "axes": _axes,
    "data_used": lambda table, _: _used(table, Axis.DATA),
    "fsdp_used": lambda table, _: _used(table, Axis.FSDP),
    "fsdp_doublings": lambda table, _: _log(table, Axis.FSDP),
    "fsdp_far": _fsdp_far,
    "fsdp_crosses": _fsdp_crosses,
    "expert_doublings": lambda table, _: _log(table, Axis.EXPERT),
    "context_short": _context_short,
    "tensor_near": _tensor_near,
    "tensor_wide": _tensor_wide,
    "tensor_thick": _tensor_thick,
    "tensor_torus": _tensor_torus,
    "pipeline_long": _pipeline_long,
}
FEATURES: tuple[str, ...] = tuple(_COLUMNS)
"""What a weight stands for; each function above says what it counts."""


def features(table: LayoutTable, workload: Workload) -> FloatColumn:
    """float64[n, len(FEATURES)]. All 0 on TPUs with fewer sequences than devices: there the batch
    forces tensor or context on the mesh, and nothing is learnt of what people like.
    """
    if not _chosen_freely(workload):
        return np.zeros((len(table), len(FEATURES)))
    return np.stack([column(table, workload) for column in _COLUMNS.values()], axis=1)


def _chosen_freely(workload: Workload) -> bool:
    topology = workload.topology
    many = workload.global_batch >= topology.devices
    return many or find_chip(topology.chip).platform != "tpu"


def preference(table: LayoutTable, workload: Workload, calibration: Calibration) -> FloatColumn:
    """Logarithm of the factor on each row's time, float64[n]; 0 in serving."""
    stack = stack_of(workload) or "tpu"
    weights = calibration.preferences.get(stack, {}) if workload.phase.is_training else {}
    if not weights or not _chosen_freely(workload):
        return np.zeros(len(table))
    bias = np.zeros(len(table))
    for name, weight in weights.items():
        bias += weight * _COLUMNS[name](table, workload)
    return bounded(bias)


def bounded(bias: FloatColumn) -> FloatColumn:
    """0.4 × (1 - e^(-x ÷ 0.4)) above 0: 0.05 stays 0.047, 0.5 becomes 0.285."""
    return np.asarray(np.where(bias > 0.0, MOST * -np.expm1(-np.maximum(bias, 0.0) / MOST), bias))
