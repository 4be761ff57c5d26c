"""Residuals of the estimates against public measurements: `python -m prompts_agent.estimate.fit`.

Prints what shipped points are missed by (`estimate/data/measured.yaml`), and how the choice among
the layouts of `estimate/data/pools.yaml` comes out.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.calibration import Calibration, Residuals, load_calibration
from prompts_agent.estimate.estimator import estimate
from prompts_agent.estimate.pools import score_pools
from prompts_agent.estimate.ranking import doublings
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.domains import domain_size, mesh_over_domains
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.model.spec import ModelSpec, MoeDims
from prompts_agent.record import Record
from prompts_agent.units import GB, GIB
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Constraints, Phase, Precision, Workload

__all__ = [
    "CompiledNeed",
    "MeasuredStep",
    "compiled_cases",
    "compiled_residuals",
    "fit",
    "load_measured",
    "peak_residuals",
    "ratio_residuals",
    "residuals_of",
    "step_cases",
    "step_residuals",
]

FloatColumn = NDArray[np.float64]


class _Case(Record):
    model: str
    topology: str
    degrees: dict[Axis, int]
    batch: int
    sequence: int


class MeasuredStep(_Case):
    """One public step time, and the layout that it was measured with."""

    remat: Remat
    microbatch: int | None = None
    """None: one microbatch is a shard's whole batch."""
    zero_stage: int = 1
    sequence_parallel: bool = False
    gradients: str = "bf16"
    step_time_s: float
    memory_gb: float | None = None
    source: str


class CompiledNeed(_Case):
    """HBM that XLA needed for AdamW in fp32, remat full, residuals whole on tensor ranks."""

    need_gib: float


def load_measured() -> tuple[dict[str, ModelSpec], list[MeasuredStep], list[CompiledNeed]]:
    """Models, step times and compiled needs of `estimate/data/measured.yaml`."""
    import yaml

    text = (
        resources.files("prompts_agent.estimate").joinpath("data/measured.yaml").read_text("utf-8")
    )
    data: dict[str, Any] = yaml.safe_load(text)
    models = {name: _model(name, dims) for name, dims in data["models"].items()}
    steps = [MeasuredStep.model_validate(entry) for entry in data["step_times"]]
    needs = [CompiledNeed.model_validate(entry) for entry in data["compiled_needs"]]
    return models, steps, needs


def _model(name: str, dims: dict[str, Any]) -> ModelSpec:
    moe = dims.pop("moe", None)
    experts = MoeDims.model_validate(moe) if moe else None
    return ModelSpec(
        name=name, family="public", source="estimate/data/measured.yaml", moe=experts, **dims
    )


def _workload(case: _Case, model: ModelSpec, precision: Precision) -> Workload:
    return Workload(
        name=case.model,
        model=model,
        topology=parse_topology(case.topology),
        phase=Phase.PRETRAIN,
        global_batch=case.batch,
        sequence=case.sequence,
        precision=precision,
        constraints=_constraints(case),
        framework=Framework.NANOTRON if case.model.startswith("nanotron") else None,
    )


def _constraints(case: _Case) -> Constraints:
    """Pipeline, data and tensor are nanotron's; the other points are a compiler's."""
    if not case.model.startswith("nanotron"):
        return Constraints()
    return Constraints(axes=(Axis.PIPELINE, Axis.DATA, Axis.TENSOR), virtual_stages=(1,))


def _layout(case: _Case, workload: Workload, **knobs: Any) -> Layout:
    mesh = mesh_over_domains(case.degrees, domain_size(workload.topology))
    shard = max(1, case.batch // Layout(mesh=mesh).batch_shards)
    micro = knobs.pop("microbatch", None) or shard
    return Layout(
        mesh=mesh, microbatch=micro, gradient_accumulation=max(1, shard // micro), **knobs
    )


def step_cases(
    calibration: Calibration | None = None,
) -> list[tuple[MeasuredStep, Layout, Workload, float]]:
    """(measured, its layout, its workload, estimated seconds) of every public step time."""
    models, steps, _ = load_measured()
    found = []
    for case in steps:
        workload = _workload(case, models[case.model], Precision(gradients=case.gradients))
        layout = _layout(
            case,
            workload,
            microbatch=case.microbatch,
            remat=case.remat,
            zero_stage=case.zero_stage,
            sequence_parallel=case.sequence_parallel,
        )
        table = LayoutTable.of([layout])
        seconds = float(estimate(table, workload, calibration=calibration).step_time_s[0])
        found.append((case, layout, workload, seconds))
    return found


def step_residuals(platform: str, calibration: Calibration | None = None) -> FloatColumn:
    """ln(estimate ÷ measured) of every public step time on `platform`."""
    cases = [c for c in step_cases(calibration) if _platform(c[2]) == platform]
    return np.log([seconds / case.step_time_s for case, _, _, seconds in cases])


def ratio_residuals(calibration: Calibration | None = None) -> tuple[FloatColumn, FloatColumn]:
    """(error of the ln of the ratio, doublings) of every pair of layouts of one workload."""
    groups: dict[tuple[str, str, int], list[tuple[MeasuredStep, Layout, float]]] = {}
    for case, layout, _, seconds in step_cases(calibration):
        groups.setdefault((case.model, case.topology, case.batch), []).append(
            (case, layout, seconds)
        )
    errors, distances = [], []
    for members in groups.values():
        for (a, one, ta), (b, two, tb) in itertools.combinations(members, 2):
            errors.append(np.log((ta / tb) / (a.step_time_s / b.step_time_s)))
            distances.append(float(doublings(LayoutTable.of([two]), one)[0]))
    return np.array(errors), np.array(distances)


def compiled_residuals(calibration: Calibration | None = None) -> FloatColumn:
    """ln(estimate ÷ need) of every compiled need without an expert axis (with one, the reference
    program's einsums gathered whole activations, which no layout asks for).
    """
    return np.array(
        [
            np.log(got / (case.need_gib * GIB))
            for case, _, got in compiled_cases(calibration)
            if case.degrees.get(Axis.EXPERT, 1) == 1
        ]
    )


def compiled_cases(
    calibration: Calibration | None = None,
) -> list[tuple[CompiledNeed, Workload, float]]:
    """(compiled need, its workload, estimated bytes) of every need that XLA reported."""
    models, _, needs = load_measured()
    found = []
    for case in needs:
        workload = _workload(case, models[case.model], Precision(gradients="fp32"))
        table = LayoutTable.of([_layout(case, workload, zero_stage=0)])
        got = float(estimate(table, workload, calibration=calibration).hbm_bytes[0])
        found.append((case, workload, got))
    return found


def peak_residuals(calibration: Calibration | None = None) -> FloatColumn:
    """ln(estimate ÷ peak) of the measured memory peaks (GPUs)."""
    errors = []
    for case, layout, workload, _ in step_cases(calibration):
        if case.memory_gb is not None:
            table = LayoutTable.of([layout])
            got = float(estimate(table, workload, calibration=calibration).hbm_bytes[0])
            errors.append(np.log(got / (case.memory_gb * GB)))
    return np.array(errors)


def fit(workloads: Sequence[Workload], sweeps: Sequence[Workload] = ()) -> Calibration:
    """Training constants and preferences fitted to the measured rows of `workloads` and `sweeps`;
    see `fit_calibration.fit_plainly`.
    """
    from prompts_agent.estimate.fit_calibration import fit_plainly

    return fit_plainly(workloads, sweeps)


def residuals_of(errors: FloatColumn, source: str) -> Residuals:
    """The record that calibration.yaml holds, from ln(estimate ÷ measured)."""
    middle, high = np.quantile(np.abs(errors), [0.5, 0.9])
    below, above = np.quantile(-errors, [0.05, 0.95])
    return Residuals(
        cases=len(errors),
        median=round(float(middle), 3),
        p90=round(float(high), 3),
        low=min(0.0, round(float(below), 3)),
        high=max(0.0, round(float(above), 3)),
        source=source,
    )


def _platform(workload: Workload) -> str:
    return find_chip(workload.topology.chip).platform


def _line(name: str, errors: FloatColumn) -> str:
    found = residuals_of(errors, "here")
    numbers = ", ".join(f"{k}: {v}" for k, v in found.model_dump(exclude={"source"}).items())
    return f"{name}: {{{numbers}}}, mean {np.mean(errors):+.3f}"


def main() -> None:
    """Print every point, and the residuals as they stand in calibration.yaml."""
    calibration = load_calibration()
    lines = []
    for case, layout, _, seconds in step_cases(calibration):
        ratio = seconds / case.step_time_s
        name = f"{case.model:15} {case.topology:12} {layout!s:45}"
        lines.append(f"{name} {case.step_time_s:8.3f} s ×{ratio:.2f}")
    lines += [_line(f"step_time.{p}", step_residuals(p, calibration)) for p in ("tpu", "gpu")]
    for name, mixture in (("dense", False), ("mixture", True)):
        lines.append(f"pools, {name}: {score_pools(calibration, mixture=mixture)}")
    lines.append(_line("hbm.tpu", compiled_residuals(calibration)))
    lines.append(_line("hbm.gpu", peak_residuals(calibration)))
    errors, distances = ratio_residuals(calibration)
    lines.append(_line("ratio_per_doubling", errors[distances > 0] / distances[distances > 0]))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
