"""Calibrate: the constants fitted to a collection of workloads and sweeps, and what they miss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from prompts_agent.errors import InputError
from prompts_agent.estimate.calibration import Calibration, load_calibration
from prompts_agent.estimate.fit_calibration import FittedCalibration, calibration_text, fit
from prompts_agent.evaluate.job import jobs_of
from prompts_agent.evaluate.sweeps import read_sweeps
from prompts_agent.record import Record
from prompts_agent.resources import data_directory
from prompts_agent.workload.yaml import load_workload

__all__ = ["Changed", "calibration_text", "changes", "fit_collection"]


class Changed(Record):
    """A constant that a fit moved."""

    name: str
    """`megatron.data_overlap`, `chips.v5p.chip_share`."""
    before: float | None
    after: float


def fit_collection(
    paths: Sequence[Path], sweeps: Path | None, tell: Callable[[str], None] = lambda _: None
) -> FittedCalibration:
    """Constants and preferences fitted to every measured run and adopted mesh.

    Without paths, the workloads that came with the package. A run that a file and a sweep both have
    counts once. Deterministic. Raises `InputError` where nothing was measured.
    """
    directories = paths or (data_directory("workloads"),)
    files = [
        file
        for path in directories
        for file in (sorted(path.rglob("*.yaml")) if path.is_dir() else [path])
    ]
    jobs = jobs_of(
        [load_workload(file) for file in dict.fromkeys(files)],
        read_sweeps(sweeps) if sweeps is not None else [],
    )
    workloads = [job.workload for job in jobs]
    training = sum(workload.phase.is_training for workload in workloads)
    tell(f"fitting to {training} workloads of training, {len(workloads) - training} of serving")
    if not any(workload.alternatives or workload.adopted for workload in workloads):
        raise InputError(
            f"{len(files)} workload files",
            rule="a fit needs runs that were measured, or layouts that were adopted",
            cure="Give files with `measured:` or `adopted:`, or --sweeps.",
        )
    return fit(workloads, tell=tell)


def changes(fitted: Calibration, before: Calibration | None = None) -> list[Changed]:
    """The constants that differ from `before`, by default what ships, by more than rounding."""
    old, new = _flat(before or load_calibration()), _flat(fitted)
    return [
        Changed(name=name, before=old.get(name), after=value)
        for name, value in sorted(new.items())
        if name not in old or abs(value - old[name]) > 5e-4 * max(abs(value), abs(old[name]))
    ]


def _flat(calibration: Calibration) -> dict[str, float]:
    found: dict[str, float] = {}
    for prefix, tables in (
        ("", calibration.platforms),
        ("", calibration.stacks),
        ("chips.", calibration.chips),
    ):
        for kind, entries in tables.items():
            found |= {f"{prefix}{kind}.{name}": one.value for name, one in entries.items()}
    for kind, weights in calibration.preferences.items():
        found |= {f"preferences.{kind}.{name}": value for name, value in weights.items()}
    return found
