"""Scoring one workload file: the layout that experts adopted against our ranking of all legal ones,
and the runs that the file names against their estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prompts_agent.errors import WorkloadError
from prompts_agent.estimate.calibration import Calibration
from prompts_agent.estimate.estimate import Estimates
from prompts_agent.estimate.estimator import estimate, propose, usable_hbm_bytes
from prompts_agent.evaluate.ablation import uncalibrated, unplaced, without_preference
from prompts_agent.evaluate.by_recipes import BY_RECIPES, by_recipes
from prompts_agent.evaluate.meshes import count_meshes, degrees_of
from prompts_agent.evaluate.methods import on_adopted
from prompts_agent.evaluate.rows import as_run_table, choice, facts, points, seconds, seconds_of
from prompts_agent.evaluate.score import ADVISOR, Method, Score, tags
from prompts_agent.evaluate.scores import TIE
from prompts_agent.evaluate.sources import collection_of, framework_of
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Measured, Workload

__all__ = ["measured_rows", "place_in", "score_adopted"]

IntColumn = NDArray[np.int64]


def measured_rows(workload: Workload) -> tuple[Measured, ...]:
    """The runs that a file names, the adopted layout's own first."""
    adopted = workload.adopted.measured if workload.adopted is not None else None
    return (*(() if adopted is None else (adopted,)), *workload.alternatives)


def place_in(layouts: Sequence[Layout], workload: Workload) -> int | None:
    """Of the adopted mesh among these layouts, 1 = first."""
    adopted = workload.adopted
    if adopted is None:
        return None
    for place, layout in enumerate(layouts, 1):
        if all(layout.mesh.size(axis) == adopted.degrees.get(axis, 1) for axis in Axis):
            return place
    return None


def score_adopted(workload: Workload, calibration: Calibration) -> Score:
    """Ranks every legal mesh and looks the adopted one up, which the ranking never sees.

    Runs are facts about step time and memory. Raises `WorkloadError` where nothing was adopted.
    """
    if workload.adopted is None:
        raise WorkloadError(
            f"workload {workload.name}",
            rule="agreement is measured against an adopted layout, and it names none",
            cure="Add `adopted:` with the degrees and their source.",
        )
    table = enumerate_layouts(search_space(workload)).table
    at = _Search(
        workload=workload,
        table=table,
        degrees=degrees_of(table),
        adopted=np.array([workload.adopted.degrees.get(axis, 1) for axis in Axis]),
    )
    estimates = estimate(table, workload, calibration=calibration)
    ranked = at.ranked(estimates, calibration=calibration)
    place = at.place(ranked)
    score = Score(
        kind="adopted",
        workload=workload.name,
        cluster=workload.name,
        tags=tags(
            workload,
            framework=framework_of(workload.source),
            collection=collection_of(workload.source),
        ),
        methods={ADVISOR: _method(place), **_others(at, estimates, calibration, ranked)},
        legal_meshes=count_meshes(at.degrees),
        place=place,
        abstained=not len(ranked),
    )
    if measured_rows(workload):
        score = _with_rows(score, workload, calibration)
    return _explained(score, at, estimates, ranked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The legal layouts of a workload, their degrees, and those that experts adopted."""

    workload: Workload
    table: LayoutTable
    degrees: IntColumn
    adopted: IntColumn

    def ranked(
        self,
        estimates: Estimates,
        count: int | None = None,
        calibration: Calibration | None = None,
    ) -> IntColumn:
        """The best row of each mesh that may fit, best first; `calibration` gives preferences."""
        if not len(self.table):
            return np.empty(0, dtype=np.int64)
        most = count or len(self.table)
        return propose(estimates, self.table, self.workload, count=most, calibration=calibration)

    def place(self, ranked: IntColumn) -> int | None:
        """Of the adopted mesh among ranked rows, 1 = first."""
        places = np.flatnonzero((self.degrees[ranked] == self.adopted).all(axis=1))
        return int(places[0]) + 1 if len(places) else None


def _others(
    at: _Search, own: Estimates, calibration: Calibration, ranked: IntColumn
) -> dict[str, Method]:
    """Baselines and ablations on the same layouts."""
    fits = own.hbm_bytes <= usable_hbm_bytes(at.workload)
    plain = estimate(at.table, at.workload, calibration=uncalibrated(calibration))
    flat = estimate(unplaced(at.table), at.workload, calibration=calibration)
    return {
        **on_adopted(at.table, at.workload, fits, at.adopted),
        "no calibration": _method(at.place(at.ranked(plain, 3, uncalibrated(calibration)))),
        "no placement": _method(at.place(at.ranked(flat, 3, calibration))),
        "no preference": _method(at.place(at.ranked(own, 3, without_preference(calibration)))),
        BY_RECIPES: _method(at.place(by_recipes(ranked, at.table, own, at.workload))),
    }


def _method(place: int | None) -> Method:
    return Method(
        top_1=float(place is not None and place <= 1), top_3=float(place is not None and place <= 3)
    )


def _with_rows(score: Score, workload: Workload, calibration: Calibration) -> Score:
    """The score with the file's runs as points and facts."""
    rows = measured_rows(workload)
    table = as_run_table(rows, workload, calibration)
    known = estimate(table, workload, calibration=calibration)
    plain = estimate(table, workload, calibration=uncalibrated(calibration))
    return score.model_copy(
        update={
            "points": points(rows, known, plain, workload),
            "facts": facts(rows, table, known, workload),
        }
    )


def _explained(score: Score, at: _Search, estimates: Estimates, ranked: IntColumn) -> Score:
    """The score with our first and the adopted layout in words, and the place that ties allow."""
    table, workload = at.table, at.workload
    same = np.flatnonzero((at.degrees == at.adopted).all(axis=1))
    found: dict[str, object] = {}
    if len(ranked):
        found["first"] = choice(table, estimates, workload, int(ranked[0]))
    if not len(same):
        return score.model_copy(update={**found, "unranked": "illegal"})
    if score.place is None:
        best = int(same[np.argmin(estimates.hbm_bytes[same])])
        found |= {"unranked": "does not fit", "truth": choice(table, estimates, workload, best)}
        return score.model_copy(update=found)
    times_s = seconds_of(estimates, workload)
    own = int(ranked[score.place - 1])
    before = ranked[: score.place - 1]
    faster = times_s[before] * (1.0 + TIE) < times_s[own]
    found |= {
        "place_with_ties": 1 + int(faster.sum()),
        "truth": choice(table, estimates, workload, own, _measured_s(workload)),
    }
    return score.model_copy(update=found)


def _measured_s(workload: Workload) -> float | None:
    adopted = workload.adopted
    if adopted is None or adopted.measured is None:
        return None
    return seconds(adopted.measured, workload)
