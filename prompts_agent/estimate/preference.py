"""Preference: what those who adopt layouts know and the formulas lack, as a small bias of ranking.

Predicted times stay as they are. Only the order is made by `time × exp(weights · features)`: an
axis that the software serves badly, or that people avoid for reasons no formula here has (code
paths that are seldom run, failures, tuning that a framework has for one kind of mesh). The weights
are a conditional logit over the meshes of the development cases (McFadden, 1974), shrunk towards 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Calibration
from prompts_agent.estimate.stack import stack_of
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Workload

__all__ = ["FEATURES", "MOST", "features", "preference"]

FloatColumn = NDArray[np.float64]

MOST = 0.2
"""The bias never exceeds this: rare layouts are all rare, and time decides between them."""

_FAR = (Axis.FSDP, Axis.EXPERT, Axis.TENSOR)
_DOUBLED = (Axis.PIPELINE, Axis.EXPERT, Axis.CONTEXT)
FEATURES: tuple[str, ...] = (
    *(f"{axis}_used" for axis in Axis),
    *(f"{axis}_doublings" for axis in _DOUBLED),
    *(f"{axis}_crosses" for axis in _FAR),
)
"""An axis above 1, log2 of its degree, and whether it crosses fast domains."""


def features(table: LayoutTable) -> FloatColumn:
    """float64[n, len(FEATURES)]."""
    return np.stack([_feature(table, name) for name in FEATURES], axis=1)


def _feature(table: LayoutTable, name: str) -> FloatColumn:
    axis, _, kind = name.rpartition("_")
    degree = table.size(Axis(axis))
    if kind == "used":
        return np.asarray(degree > 1, dtype=np.float64)
    if kind == "doublings":
        return np.asarray(np.log2(degree), dtype=np.float64)
    return np.asarray(table.dcn[:, list(Axis).index(Axis(axis))] > 1, dtype=np.float64)


def preference(table: LayoutTable, workload: Workload, calibration: Calibration) -> FloatColumn:
    """Logarithm of the factor on each row's time, float64[n]; 0 in serving."""
    stack = stack_of(workload) or "tpu"
    weights = calibration.preferences.get(stack, {}) if workload.phase.is_training else {}
    if not weights:
        return np.zeros(len(table))
    bias = np.zeros(len(table))
    for name, weight in weights.items():
        bias += weight * _feature(table, name)
    # 0.2 × (1 - e^(-x ÷ 0.2)): 0.05 stays 0.044, 0.25 becomes 0.143.
    return np.asarray(np.where(bias > 0.0, MOST * -np.expm1(-np.maximum(bias, 0.0) / MOST), bias))
