"""As run: the estimate of a layout that somebody measured, where its source leaves knobs open."""

from __future__ import annotations

from prompts_agent.estimate.calibration import Calibration
from prompts_agent.estimate.estimate import Estimates
from prompts_agent.estimate.estimator import estimate, rank
from prompts_agent.layout.factorisations import divisors
from prompts_agent.layout.layout import Layout, PipelineSchedule
from prompts_agent.layout.legality import keep, knob_rules
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Measured, Workload

__all__ = ["as_run", "as_run_choices"]


def as_run(
    measured: Measured, workload: Workload, *, calibration: Calibration | None = None
) -> tuple[Layout, Estimates]:
    """The layout that was most likely run, and its estimate (one row).

    Whoever tuned a run and does not print a knob has set it well: of the values that an open knob
    may have, the best-ranked is taken. Nothing is open where the source states all.
    """
    table = as_run_choices(measured, workload)
    estimates = estimate(table, workload, calibration=calibration)
    best = int(rank(estimates, table, workload, calibration=calibration)[0])
    return table.row(best), estimates.row(best)


def as_run_choices(measured: Measured, workload: Workload) -> LayoutTable:
    """Every legal value of the open knobs on the mesh of `measured.layout`; that layout alone where
    none is open or none is legal.
    """
    layout, opened = measured.layout, measured.open_knobs
    if not opened or not workload.phase.is_training:
        return LayoutTable.of([layout])
    space = search_space(workload)
    remats = space.remat if "remat" in opened else (layout.remat,)
    switches: tuple[bool, ...] = (layout.sequence_parallel,)
    if "sequence_parallel" in opened:
        switches = space.sequence_parallel if layout.mesh.size(Axis.TENSOR) > 1 else (False,)
    rows = [
        layout.model_copy(
            update={"remat": remat, "sequence_parallel": switch, **batch, **_chunked(chunks)}
        )
        for remat in remats
        for switch in switches
        for batch in _batches(layout, opened, workload)
        for chunks in _chunks(layout, opened, workload)
    ]
    table = LayoutTable.of(rows)
    legal = table.take(keep(table, space, knob_rules(space)))
    return legal if len(legal) else LayoutTable.of([layout])


def _batches(layout: Layout, opened: tuple[str, ...], workload: Workload) -> list[dict[str, int]]:
    if "microbatch" not in opened:
        return [{}]
    per_shard = workload.global_batch // layout.batch_shards
    return [
        {"microbatch": size, "gradient_accumulation": per_shard // size}
        for size in divisors(max(per_shard, 1))
    ]


def _chunks(layout: Layout, opened: tuple[str, ...], workload: Workload) -> list[int]:
    stages = layout.mesh.size(Axis.PIPELINE)
    allowed = workload.constraints.virtual_stages
    if "virtual_stages" not in opened or stages == 1:
        return [layout.virtual_stages]
    found = divisors(-(-workload.model.layers // stages))
    return [v for v in found if v == 1 or not allowed or v in allowed]


def _chunked(chunks: int) -> dict[str, object]:
    plain = PipelineSchedule.ONE_F_ONE_B
    schedule = plain if chunks == 1 else PipelineSchedule.INTERLEAVED
    return {"virtual_stages": chunks, "schedule": schedule}
