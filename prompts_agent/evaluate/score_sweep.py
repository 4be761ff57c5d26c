"""Scoring one sweep: our ranking of its runs, and of everything legal, against what they took."""

from __future__ import annotations

import numpy as np

from prompts_agent.errors import LayoutError
from prompts_agent.estimate.calibration import Calibration
from prompts_agent.estimate.estimator import estimate, propose
from prompts_agent.evaluate.ablation import uncalibrated, unplaced, without_preference
from prompts_agent.evaluate.meshes import count_meshes, degrees_of
from prompts_agent.evaluate.methods import by_estimate, on_runs, top_choices
from prompts_agent.evaluate.rows import as_run_table, choice, facts, points, seconds
from prompts_agent.evaluate.score import ADVISOR, Method, Score, Unrestricted, tags
from prompts_agent.evaluate.sweep import Sweep
from prompts_agent.evaluate.tuner import tuned
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Measured

__all__ = ["score_sweep"]


def score_sweep(sweep: Sweep, calibration: Calibration) -> Score:
    """Scores the rows of `sweep`.

    Only rows with a time are ranked. Those that ran out of memory count as facts of fit, and those
    that failed for no stated cause count for nothing but the unrestricted choice.
    """
    workload = sweep.workload
    table = as_run_table(sweep.rows, workload, calibration)
    estimates = estimate(table, workload, calibration=calibration)
    plain = estimate(table, workload, calibration=uncalibrated(calibration))
    score = Score(
        kind="facts",
        workload=workload.name,
        cluster=sweep.cluster,
        tags=tags(workload, framework=sweep.framework, collection=sweep.collection),
        methods={},
        points=points(sweep.rows, estimates, plain, workload),
        facts=facts(sweep.rows, table, estimates, workload),
    )
    return _ranked(sweep, score, calibration) if sweep.rankable else score


def _ranked(sweep: Sweep, score: Score, calibration: Calibration) -> Score:
    workload = sweep.workload
    timed = [(row, time) for row in sweep.rows if (time := seconds(row, workload)) is not None]
    table = as_run_table([row for row, _ in timed], workload, calibration)
    times_s = np.array([time for _, time in timed])
    estimates = estimate(table, workload, calibration=calibration)
    plain = estimate(table, workload, calibration=uncalibrated(calibration))
    flat = estimate(unplaced(table), workload, calibration=calibration)
    methods: dict[str, Method] = {
        ADVISOR: by_estimate(estimates, table, workload, times_s, calibration),
        **on_runs(table, workload, times_s),
        **tuned(table, times_s),
        "no calibration": by_estimate(plain, table, workload, times_s, uncalibrated(calibration)),
        "no placement": by_estimate(flat, table, workload, times_s, calibration),
        "no preference": by_estimate(
            estimates, table, workload, times_s, without_preference(calibration)
        ),
    }
    first, best = (
        int(top_choices(estimates, table, workload, calibration)[0]),
        int(np.argmin(times_s)),
    )
    return score.model_copy(
        update={
            "kind": "sweep",
            "layouts": len(timed),
            "methods": methods,
            "abstained": not len(propose(estimates, table, workload, calibration=calibration)),
            "legal_meshes": len(table),
            "unrestricted": _unrestricted(sweep, timed, calibration),
            "first": choice(table, estimates, workload, first, float(times_s[first])),
            "truth": choice(table, estimates, workload, best, float(times_s[best])),
        }
    )


def _unrestricted(
    sweep: Sweep, timed: list[tuple[Measured, float]], calibration: Calibration
) -> Unrestricted | None:
    """Our first of everything legal, and what runs of the same degrees reached."""
    workload = sweep.workload
    try:
        table = enumerate_layouts(search_space(workload)).table
    except LayoutError:
        return None
    if not len(table):
        return None
    estimates = estimate(table, workload, calibration=calibration)
    first = table.row(int(top_choices(estimates, table, workload, calibration)[0]))
    degrees = tuple(first.mesh.size(axis) for axis in Axis)
    least_s = min(time for _, time in timed)
    same = [t for row, t in timed if tuple(row.layout.mesh.size(a) for a in Axis) == degrees]
    bad = [*sweep.failed, *(row.layout for row in sweep.rows if row.out_of_memory)]
    run = LayoutTable.of(row.layout for row, _ in timed)
    return Unrestricted(
        layout=str(first),
        measured=bool(same),
        failed=not same and any(tuple(x.mesh.size(a) for a in Axis) == degrees for x in bad),
        regret=min(same) / least_s - 1.0 if same else None,
        tried_share=min(1.0, count_meshes(degrees_of(run)) / count_meshes(degrees_of(table))),
        tried_failed=len(bad) / (len(bad) + len(timed)),
    )
