"""From what was tried to a Sweep: one row a layout, and nothing that is not a fact."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prompts_agent.evaluate.sweep import Sweep
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.complete import Surroundings, complete_layout
from prompts_agent.workload.workload import Measured, Workload

__all__ = ["Tried", "sweep_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One line of a published sweep. Without a time and without `out_of_memory` it failed."""

    degrees: Mapping[Axis, int]
    knobs: Mapping[str, Any]
    step_time_s: float | None = None
    tokens_per_s: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    hbm_bytes: int | None = None
    out_of_memory: bool = False

    @property
    def ran(self) -> bool:
        """A run that gave a time."""
        return self.step_time_s is not None or self.tokens_per_s is not None


def sweep_of(
    workload: Workload,
    tried: Sequence[Tried],
    framework: str,
    collection: str,
    *,
    cluster: str | None = None,
    rankable: bool = True,
) -> Sweep:
    """Rows by layout. Repeats of a layout are one row: the median of its figures.

    A layout of which one run finished does not run out of memory, whatever another run's flags did;
    one that only failed for no stated cause is in `failed`.
    """
    around = Surroundings(
        topology=workload.topology,
        phase=workload.phase,
        global_batch=workload.global_batch,
        constraints=workload.constraints,
        precision=workload.precision,
    )
    by_layout: dict[str, tuple[Layout, list[Tried]]] = {}
    for one in tried:
        layout, _ = complete_layout(one.degrees, one.knobs, around)
        if layout.devices == workload.topology.devices:
            by_layout.setdefault(layout.model_dump_json(), (layout, []))[1].append(one)
    rows, failed = [], []
    for layout, runs in by_layout.values():
        ran = [run for run in runs if run.ran]
        if ran or any(run.out_of_memory for run in runs):
            rows.append(_row(layout, ran, workload.source or collection, comparable=rankable))
        else:
            failed.append(layout)
    return Sweep(
        workload=workload,
        rows=tuple(rows),
        failed=tuple(failed),
        framework=framework,
        collection=collection,
        cluster=f"{collection}: {cluster or workload.name}",
        rankable=rankable and sum(not row.out_of_memory for row in rows) > 1,
    )


def _row(layout: Layout, ran: Sequence[Tried], source: str, *, comparable: bool) -> Measured:
    if not ran:
        return Measured(layout=layout, out_of_memory=True, comparable=comparable, source=source)
    hbm_bytes = _median([run.hbm_bytes for run in ran])
    return Measured(
        layout=layout,
        step_time_s=_median([run.step_time_s for run in ran]),
        tokens_per_s=_median([run.tokens_per_s for run in ran]),
        ttft_s=_median([run.ttft_s for run in ran]),
        tpot_s=_median([run.tpot_s for run in ran]),
        hbm_bytes=None if hbm_bytes is None else int(hbm_bytes),
        comparable=comparable,
        source=source,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
