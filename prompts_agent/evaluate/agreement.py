"""Agreement: where the layout that experts adopted stands in our ranking of a workload.

Beside it, in the same run, what luck and a rule of thumb reach on the same legal meshes; a figure
without its baseline says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prompts_agent.errors import WorkloadError
from prompts_agent.estimate.estimate import Estimates
from prompts_agent.estimate.estimator import estimate, propose, usable_hbm_bytes
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.record import Record
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Workload

__all__ = ["Agreement", "Totals", "agreement", "totals"]


class Agreement(Record):
    """One workload. Two layouts agree where every mesh axis has the same degree."""

    workload: str
    legal_meshes: int
    place: int | None
    """Of the adopted mesh among our proposals, 1 = first; None: it may not fit or is illegal."""
    smallest_tensor_agrees: bool
    """The rule "smallest tensor degree that fits, then smallest context degree" picks it."""


class Totals(Record):
    """Shares of workloads, 0 to 1, over `workloads` of them."""

    workloads: int
    top_1: float
    top_3: float
    random_top_1: float
    """Expected of a mesh drawn evenly from the legal ones."""
    random_top_3: float
    smallest_tensor_top_1: float


def agreement(workload: Workload) -> Agreement:
    """Ranks every legal mesh of `workload` and looks the adopted one up.

    The adopted mesh is never shown to the ranking. Raises `WorkloadError` where none was adopted.
    """
    if workload.adopted is None:
        raise WorkloadError(
            f"workload {workload.name}",
            rule="agreement is measured against an adopted layout, and it names none",
            cure="Add `adopted:` with the degrees and their source.",
        )
    table = enumerate_layouts(search_space(workload)).table
    estimates = estimate(table, workload, measured_baseline=workload.baseline_measured)
    degrees = np.stack([table.size(axis) for axis in Axis], axis=1)
    adopted = np.array([workload.adopted.degrees.get(axis, 1) for axis in Axis])
    legal_meshes = len(np.unique(degrees, axis=0))
    ranked = propose(estimates, table, workload, count=legal_meshes)
    places = np.flatnonzero((degrees[ranked] == adopted).all(axis=1))
    smallest = _smallest_tensor(degrees, table, estimates, usable_hbm_bytes(workload))
    return Agreement(
        workload=workload.name,
        legal_meshes=legal_meshes,
        place=int(places[0]) + 1 if len(places) else None,
        smallest_tensor_agrees=smallest is not None and bool((smallest == adopted).all()),
    )


def totals(found: Sequence[Agreement]) -> Totals:
    """Means over workloads; raises `WorkloadError` where there are none."""
    if not found:
        raise WorkloadError(
            "no workload",
            rule="an evaluation needs workloads that name an adopted layout",
            cure="Give the path of at least one workload with `adopted:`.",
        )
    return Totals(
        workloads=len(found),
        top_1=_share([a.place is not None and a.place <= 1 for a in found]),
        top_3=_share([a.place is not None and a.place <= 3 for a in found]),
        random_top_1=_share([1.0 / a.legal_meshes for a in found]),
        random_top_3=_share([min(1.0, 3.0 / a.legal_meshes) for a in found]),
        smallest_tensor_top_1=_share([a.smallest_tensor_agrees for a in found]),
    )


def _share(values: Sequence[float | bool]) -> float:
    return float(np.mean(values))


def _smallest_tensor(
    degrees: NDArray[np.int64], table: LayoutTable, estimates: Estimates, hbm_bytes: float
) -> NDArray[np.int64] | None:
    fits = np.flatnonzero(estimates.hbm_bytes <= hbm_bytes)
    if not len(fits):
        return None
    keys = [table.size(axis)[fits] for axis in (Axis.PIPELINE, Axis.CONTEXT, Axis.TENSOR)]
    best: NDArray[np.int64] = degrees[fits[np.lexsort(keys)[0]]]
    return best
