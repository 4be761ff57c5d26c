"""Checks of workload files, for people who edit them and for CI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from prompts_agent.errors import PromptsError
from prompts_agent.record import Record
from prompts_agent.workload.workload import Workload
from prompts_agent.workload.yaml import UNSOURCED, load_workload

__all__ = ["Problem", "check"]

_NOT_THE_JOB = {"name", "assumptions", "source", "baseline", "baseline_measured"}


class Problem(Record):
    """One fault: the file, what was seen, the rule it breaks, the cure."""

    file: str
    value: str
    rule: str
    cure: str

    def __str__(self) -> str:
        return f"{self.value}: {self.rule}. {self.cure}"


def check(paths: Sequence[Path]) -> tuple[Problem, ...]:
    """Every problem of the workload files at `paths`, in their order; empty: all is well.

    What keeps a file from loading (the first fault of each, a product of adopted degrees other than
    the devices among them), figures and dims without a source, equal names, equal jobs.
    """
    problems: list[Problem] = []
    seen: list[tuple[Path, Workload]] = []
    for path in paths:
        try:
            workload = load_workload(path)
        except PromptsError as error:
            problems.append(_problem(path, error.value, error.rule, error.cure))
            continue
        problems += _unsourced(path, workload)
        problems += _repeated(path, workload, seen)
        seen.append((path, workload))
    return tuple(problems)


def _problem(path: Path, value: str, rule: str, cure: str) -> Problem:
    return Problem(file=str(path), value=value, rule=rule, cure=cure)


def _unsourced(path: Path, workload: Workload) -> Iterator[Problem]:
    sources = {"model": workload.model.source}
    if workload.baseline_measured is not None:
        sources["baseline.measured"] = workload.baseline_measured.source
    if workload.adopted is not None:
        sources["adopted"] = workload.adopted.source
        if workload.adopted.measured is not None:
            sources["adopted.measured"] = workload.adopted.measured.source
    for i, row in enumerate(workload.alternatives):
        sources[f"alternatives.{i}"] = row.source
    missing = [key for key, source in sources.items() if source == UNSOURCED]
    if missing:
        yield _problem(
            path,
            f"{path}, {', '.join(missing)}",
            "every figure has a source, and so have a model's dims and what experts adopted",
            "Add `source: …` to the file (and to a model that is written out), or beside each.",
        )


def _repeated(
    path: Path, workload: Workload, seen: Sequence[tuple[Path, Workload]]
) -> Iterator[Problem]:
    for other, earlier in seen:
        if workload.name == earlier.name:
            yield _problem(
                path,
                f"{path}: name {workload.name!r}",
                f"{other} has it as well",
                "Name one of them otherwise.",
            )
        elif _same_job(workload, earlier):
            yield _problem(
                path,
                f"{path}: the job of {other}",
                "two files describe one job with the same answer and measurements",
                "Keep one of them.",
            )


def _same_job(one: Workload, other: Workload) -> bool:
    """Everything that decides a plan or its score is equal, whatever the files are called."""
    return all(
        getattr(one, field) == getattr(other, field)
        for field in Workload.model_fields
        if field not in _NOT_THE_JOB
    )
