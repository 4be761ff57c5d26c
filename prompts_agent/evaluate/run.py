"""Running an evaluation: every job once, over several processes, skipping what the journal has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from prompts_agent.errors import ExitCode, InternalError, WorkloadError
from prompts_agent.estimate.calibration import Calibration
from prompts_agent.evaluate.job import TARGET, Job, packed, score_job
from prompts_agent.evaluate.journal import Journal
from prompts_agent.evaluate.score import Score
from prompts_agent.workers.outcome import Limits, Outcome
from prompts_agent.workers.pool import Pool

__all__ = ["run"]


def run(
    jobs: Sequence[Job],
    calibration_of: Callable[[Job], Calibration],
    *,
    directory: Path | None = None,
    processes: int = 1,
    on_score: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Score]:
    """The scores of `jobs`, in their order whatever finishes first.

    Each is written to the journal as soon as it is there. `on_score` is told how many are done.
    Raises `WorkloadError` where there is nothing to score.
    """
    if not jobs:
        raise WorkloadError(
            "nothing to score",
            rule="an evaluation needs workloads with an adopted layout or with measured runs",
            cure="Give workload files with `adopted:` or `alternatives:`, or --sweeps DIR.",
        )
    journal = Journal(directory, "scores.jsonl", Score)
    known = journal.records()
    calibrations = [calibration_of(job) for job in jobs]
    keys = [job.key(calibration) for job, calibration in zip(jobs, calibrations, strict=True)]
    waiting = [i for i, key in enumerate(keys) if key not in known]
    done = len(jobs) - len(waiting)
    on_score(done, len(jobs))
    # The largest search spaces first, or one of them would be left alone at the end.
    waiting.sort(key=lambda i: (jobs[i].sweep is not None, -jobs[i].workload.topology.devices))
    for i, score in _scored([(i, jobs[i], calibrations[i]) for i in waiting], processes):
        journal.append(keys[i], score)
        known[keys[i]] = score
        done += 1
        on_score(done, len(jobs))
    return [known[key] for key in keys]


def _scored(
    tasks: Sequence[tuple[int, Job, Calibration]], processes: int
) -> Iterator[tuple[int, Score]]:
    if processes == 1 or len(tasks) < 2:
        for i, job, calibration in tasks:
            yield i, score_job(job, calibration)
        return
    payloads = ((i, packed(job, calibration)) for i, job, calibration in tasks)
    with Pool[int](TARGET, processes, Limits(), keep=True) as pool:
        for i, outcome in pool.run(payloads):
            yield i, _score(outcome)


def _score(outcome: Outcome) -> Score:
    if outcome.ended == "returned":
        return Score.model_validate_json(outcome.result)
    failure = outcome.failure
    if failure is not None and failure.exit_code == ExitCode.BAD_INPUT:
        raise WorkloadError(failure.value, rule=failure.rule, cure=failure.cure)
    raise InternalError(
        f"{outcome.reason}: {outcome.message}",
        rule="every workload that was read can be scored",
        cure="Report it with this message; --jobs 1 shows where.",
    )
