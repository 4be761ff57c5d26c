"""A whole evaluation: from paths to scores, tables and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from prompts_agent import __version__
from prompts_agent.errors import InputError, OutputError
from prompts_agent.estimate.calibration import (
    Calibration,
    load_calibration,
    read_calibration,
    using,
)
from prompts_agent.evaluate.by_recipes import effect
from prompts_agent.evaluate.folds import FoldsBy, cross_validated, find_fitter
from prompts_agent.evaluate.job import Job, jobs_of
from prompts_agent.evaluate.plot import plots
from prompts_agent.evaluate.report_markdown import as_json, as_markdown
from prompts_agent.evaluate.run import run
from prompts_agent.evaluate.score import Score
from prompts_agent.evaluate.summary import BY, Section, summary
from prompts_agent.evaluate.sweeps import LEFT_OUT, read_sweeps
from prompts_agent.record import Record
from prompts_agent.resources import data_directory
from prompts_agent.workload.workload import Workload
from prompts_agent.workload.yaml import load_workload

__all__ = [
    "Evaluation",
    "Request",
    "constants_of",
    "evaluate_all",
    "workloads_of",
    "write_evaluation",
]


class Request(Record):
    """What to score. Without paths, the workloads that came with the package are the split `dev`;
    any other split must be given by paths or sweeps.
    """

    paths: tuple[Path, ...] = ()
    sweeps: Path | None = None
    split: str = "dev"
    by: tuple[str, ...] = ()
    directory: Path | None = None
    folds: int | None = None
    folds_by: FoldsBy = "model"
    calibration: Path | None = None
    """A file of constants; None: those that ship."""
    processes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Scores of every workload, their summary, and sentences on what was run."""

    scores: list[Score]
    sections: list[Section]
    about: tuple[str, ...]


def evaluate_all(
    request: Request, on_score: Callable[[int, int], None] = lambda _done, _all: None
) -> Evaluation:
    """Scores everything that was asked for.

    Raises `InputError` for an unknown key or split, and what the readers of files raise.
    """
    for key in request.by:
        if key not in BY:
            raise InputError(
                f"--by {key}",
                rule="figures can be split by what workloads are tagged with",
                cure=f"Give some of {', '.join(BY)}.",
            )
    workloads = workloads_of(request)
    sweeps = read_sweeps(request.sweeps) if request.sweeps is not None else []
    jobs = jobs_of(workloads, sweeps)
    scores = run(
        jobs,
        _calibrations(jobs, request),
        directory=request.directory,
        processes=request.processes,
        on_score=on_score,
    )
    return Evaluation(
        scores=scores,
        sections=summary(scores, request.by),
        about=_about(request, jobs, scores),
    )


def workloads_of(request: Request) -> list[Workload]:
    """The files of the request; directories are searched for `*.yaml`, in order of name."""
    if not request.paths and request.split != "dev":
        if request.sweeps is None:
            raise InputError(
                f"--split {request.split}",
                rule="the workloads that came with prompts are the split dev",
                cure="Give the files of another split as paths, or its sweeps.",
            )
        return []
    paths: Sequence[Path] = request.paths or (data_directory("workloads"),)
    files: list[Path] = []
    for path in paths:
        files += sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
    return [load_workload(file) for file in dict.fromkeys(files)]


def constants_of(request: Request) -> AbstractContextManager[None]:
    """Inside, estimates take the constants of the request's file, where it has one."""
    path = request.calibration
    return using(None if path is None else read_calibration(path))


def _calibrations(jobs: Sequence[Job], request: Request) -> Callable[[Job], Calibration]:
    folds, path = request.folds, request.calibration
    if folds is not None and path is not None:
        raise InputError(
            f"--folds {folds} with --calibration",
            rule="cross-validation fits constants of its own",
            cure="Give one of the two.",
        )
    if folds is None:
        given = load_calibration() if path is None else read_calibration(path)
        return lambda _job: given
    fit = find_fitter()
    if fit is None:
        raise InputError(
            f"--folds {folds}",
            rule="cross-validation fits the constants anew, and this version cannot",
            cure="Leave --folds out: the shipped constants are scored.",
        )
    return cross_validated(jobs, folds, fit, request.folds_by)


def _about(request: Request, jobs: Sequence[Job], scores: Sequence[Score]) -> tuple[str, ...]:
    adopted = [score for score in scores if score.kind == "adopted"]
    meshes = sorted(score.legal_meshes or 0 for score in adopted)
    found = [
        f"prompts {__version__}, split {request.split}: {len(adopted)} adopted layouts, "
        f"{sum(score.kind == 'sweep' for score in scores)} sweeps, {len(jobs)} workloads in all.",
        f"Constants: {_constants(request)}.",
        _open_knobs(jobs),
    ]
    if adopted:
        found.append(
            f"Legal meshes of a workload: {meshes[0]} to {meshes[-1]}, "
            f"median {meshes[len(meshes) // 2]}."
        )
    silent = sum(score.abstained for score in scores)
    unranked = sum(score.unranked is not None for score in scores)
    found.append(
        f"Abstentions (nothing is said to fit): {silent}, where a rule never abstains; adopted "
        f"layouts that are called illegal or too large: {unranked}."
    )
    changed = effect(scores)
    if changed is not None:
        found.append(changed)
    if request.sweeps is not None:
        found += [f"Not read: {name} ({reason})." for name, reason in LEFT_OUT.items()]
    return tuple(found)


def _constants(request: Request) -> str:
    if request.folds:
        return f"fitted on other {request.folds_by}s than they are scored on, {request.folds} folds"
    if request.calibration is not None:
        return f"those of {request.calibration.name}"
    return "as shipped, which were fitted on a part of these workloads"


def _open_knobs(jobs: Sequence[Job]) -> str:
    """How many runs are scored with knobs that were chosen for them, a sentence."""
    rows: Counter[str] = Counter()
    knobs: Counter[str] = Counter()
    for job in jobs:
        for row in job.workload.alternatives:
            rows["open" if row.open_knobs else "stated"] += 1
            knobs.update(row.open_knobs)
    named = ", ".join(f"{name} {count:,}" for name, count in sorted(knobs.items()))
    return (
        f"Runs whose source leaves knobs open: {rows['open']:,} of {rows.total():,}"
        + (f" ({named})" if named else "")
        + "; each counts with the best-ranked values of these."
    )


def write_evaluation(found: Evaluation, directory: Path) -> None:
    """`evaluation.json`, `evaluation.md` and `plots/*.svg`, replacing older ones.

    Raises `OutputError` where they cannot be written.
    """
    files = {
        "evaluation.json": as_json(found.sections, found.scores, found.about),
        "evaluation.md": as_markdown(found.sections, found.scores, found.about),
    } | {f"plots/{name}": text for name, text in plots(found.sections, found.scores).items()}
    try:
        (directory / "plots").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            str(directory), rule=error.strerror or "cannot be written", cure="Give another -o DIR."
        ) from error
