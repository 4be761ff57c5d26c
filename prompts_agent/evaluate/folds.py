"""Cross-validation: constants are fitted on other models, or workloads, than they are scored on."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from prompts_agent.errors import InputError
from prompts_agent.estimate.calibration import Calibration
from prompts_agent.evaluate.job import Job
from prompts_agent.workload.workload import Workload

__all__ = ["Fitter", "FoldsBy", "cross_validated", "find_fitter", "fold_of"]

FoldsBy = Literal["model", "workload"]
"""What is never split: a model on a chip, whatever the number of devices, or one such machine."""


class Fitter(Protocol):
    """Fits constants and residuals. Measured rows stand among each workload's alternatives."""

    def __call__(self, workloads: Sequence[Workload], /) -> Calibration:
        """The calibration."""
        ...


def fold_of(groups: Sequence[str], folds: int) -> list[int]:
    """The fold of each entry: entries of one group share it, and folds are as equal as that allows.

    Deterministic, whatever the order: groups by size, then by name, each to the smallest fold.
    Raises `InputError` for fewer than two folds, or more than groups.

    >>> fold_of(["a", "b", "a", "c", "a"], 2)
    [0, 1, 0, 1, 0]
    """
    sizes = Counter(groups)
    if not 2 <= folds <= len(sizes):
        raise InputError(
            f"{folds} folds over {len(sizes)} groups",
            rule="cross-validation needs two folds or more, and a group for each",
            cure=f"Give 2 to {len(sizes)} folds.",
        )
    filled = [0] * folds
    place: dict[str, int] = {}
    for group in sorted(sizes, key=lambda name: (-sizes[name], name)):
        place[group] = min(range(folds), key=lambda fold: (filled[fold], fold))
        filled[place[group]] += sizes[group]
    return [place[group] for group in groups]


def cross_validated(
    jobs: Sequence[Job], folds: int, fit: Fitter, by: FoldsBy = "model"
) -> Callable[[Job], Calibration]:
    """For each job, the calibration that was fitted on the other folds' workloads."""

    def together(job: Job) -> str:
        return job.group if by == "model" else job.machine

    own = fold_of([together(job) for job in jobs], folds)
    calibrations = [
        fit([job.workload for job, fold in zip(jobs, own, strict=True) if fold != left_out])
        for left_out in range(folds)
    ]
    found = {together(job): calibrations[fold] for job, fold in zip(jobs, own, strict=True)}
    return lambda job: found[together(job)]


def find_fitter() -> Fitter | None:
    """`prompts_agent.estimate.fit.fit`, or None where this version has none."""
    fit: Fitter | None = getattr(importlib.import_module("prompts_agent.estimate.fit"), "fit", None)
    return fit
