"""Jobs: what there is to score, and the score of each."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from prompts_agent.estimate.calibration import Calibration
from prompts_agent.evaluate.by_recipes import principles_digest
from prompts_agent.evaluate.score import Score
from prompts_agent.evaluate.score_adopted import measured_rows, score_adopted
from prompts_agent.evaluate.score_sweep import score_sweep
from prompts_agent.evaluate.sources import collection_of, framework_of
from prompts_agent.evaluate.sweep import Sweep
from prompts_agent.evaluate.tuner import tuner_version
from prompts_agent.record import Record
from prompts_agent.workload.workload import Workload

__all__ = [
    "TARGET",
    "Job",
    "code_version",
    "jobs_of",
    "packed",
    "score_job",
    "score_packed",
]

TARGET = f"{__name__}:score_packed"

_ROOMS = (
    *("model", "hardware", "layout", "workload", "serving", "knowledge", "estimate"),
    *("agents/planner", "evaluate"),
)


class Job(Record):
    """One workload to score: against what was adopted, or a sweep against its runs."""

    adopted: Workload | None = None
    sweep: Sweep | None = None

    @property
    def workload(self) -> Workload:
        """The workload as a fit sees it: with every run that was measured as an alternative."""
        if self.sweep is not None:
            return self.sweep.with_alternatives
        assert self.adopted is not None  # noqa: S101  (jobs_of makes no empty job)
        return self.adopted.model_copy(update={"alternatives": measured_rows(self.adopted)})

    @property
    def group(self) -> str:
        """Jobs of one group share a model and a chip, and are never split by cross-validation."""
        workload = self.workload
        return f"{workload.model.name} on {workload.topology.chip}"

    @property
    def machine(self) -> str:
        """Jobs of one machine are one workload: a model on as many of these chips, whatever the
        batch, the precision and the software.
        """
        topology = self.workload.topology
        return f"{self.workload.model.name} on {topology.devices} {topology.chip}"

    def key(self, calibration: Calibration) -> str:
        """A hash of everything that decides the score."""
        parts = (
            self.model_dump_json(),
            calibration.model_dump_json(),
            code_version(),
            tuner_version() or "",
            principles_digest(),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def jobs_of(workloads: Sequence[Workload], sweeps: Sequence[Sweep]) -> list[Job]:
    """Everything that can be scored: adopted layouts first, then sweeps.

    A file whose runs compare is a sweep too, unless the sweep that it was taken from is among
    `sweeps`: a run is counted once.
    """
    covered = {collection_of(sweep.workload.source) for sweep in sweeps}
    own = [
        found
        for workload in workloads
        if collection_of(workload.source) not in covered
        and (found := _sweep_of_file(workload)) is not None
    ]
    adopted = [
        Job(adopted=_bare(workload) if collection_of(workload.source) in covered else workload)
        for workload in workloads
        if workload.adopted is not None
    ]
    return [*adopted, *(Job(sweep=sweep) for sweep in (*own, *sweeps))]


def _bare(workload: Workload) -> Workload:
    """Without its runs, which a sweep brings."""
    assert workload.adopted is not None  # noqa: S101  (asked by the only caller)
    adopted = workload.adopted.model_copy(update={"measured": None})
    return workload.model_copy(update={"adopted": adopted, "alternatives": ()})


def _sweep_of_file(workload: Workload) -> Sweep | None:
    """The file's comparable runs, if there are two with a time; None: they are points at most."""
    rows = tuple(row for row in measured_rows(workload) if row.comparable)
    timed = [row for row in rows if not row.out_of_memory and (row.step_time_s or row.tokens_per_s)]
    rankable = len({row.layout.model_dump_json() for row in timed}) > 1
    if not rankable and (workload.adopted is not None or not rows):
        return None
    return Sweep(
        workload=workload.model_copy(update={"adopted": None, "alternatives": ()}),
        # Adopted layouts bring their facts themselves.
        rows=rows,
        framework=framework_of(workload.source),
        collection=collection_of(workload.source),
        cluster=workload.name,
        rankable=rankable,
    )


def score_job(job: Job, calibration: Calibration) -> Score:
    """The score of one job."""
    if job.sweep is not None:
        return score_sweep(job.sweep, calibration)
    return score_adopted(job.workload if job.adopted is None else job.adopted, calibration)


def packed(job: Job, calibration: Calibration) -> bytes:
    """A job and the constants that it is scored with, for another process of this program.

    Pickled: JSON would forget which constraints a workload file states, and that decides its space.
    """
    return pickle.dumps((job, calibration))


def score_packed(payload: bytes) -> bytes:
    """The score of what `packed` made, as JSON: what a worker does."""
    job, calibration = pickle.loads(payload)  # noqa: S301  (from this process's own parent)
    return score_job(job, calibration).model_dump_json().encode()


@cache
def code_version(*more: str) -> str:
    """A hash of the code and data that scores depend on, of the rooms `more` too: another version
    scores anew.
    """
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for room in (*_ROOMS, *more):
        for path in sorted((package / room).rglob("*")):
            if path.suffix in (".py", ".yaml", ".json") and path.is_file():
                digest.update(str(path.relative_to(package)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
