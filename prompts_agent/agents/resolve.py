"""Resolving a job: model, hardware, batch and today's layout, from file, flags and trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from prompts_agent.agents.baseline import Today, calibrated, today_of
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.hardware.topology import Topology, parse_topology
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.catalog import find_model
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.narrow import narrow
from prompts_agent.workload.workload import Objective, Phase, Precision, Workload

__all__ = ["Job", "resolve"]

GIVE_MODEL = "Name the model: --model llama3.1-8b, or --model path/to/config.json."
GIVE_TARGET = "Name the hardware: --target v5e:4x4, or --target h100:2x8 (nodes x GPUs)."
GIVE_BATCH = "Give the global batch, in sequences: --batch 256."
GIVE_SEQUENCE = "Give the sequence length, in tokens: --sequence 4096."
GIVE_PHASE = "Say what the job does: --phase pretrain, posttrain, prefill, decode or serve."


class Job(Record):
    """What is known of the job. Without `workload`, `missing` says what to give."""

    workload: Workload | None = None
    missing: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    axes: dict[str, Axis] = Field(default_factory=dict)
    """The trace's axis names → ours."""
    traced: dict[Axis, int] = Field(default_factory=dict)
    """Degrees of the mesh that ran, where the workload has no baseline because of its devices."""


def resolve(request: DiagnoseRequest, profile: Profile | None) -> Job:
    """The job of a request: the workload file first, then flags, then what the trace shows.

    Raises `ModelError` and `HardwareError` for flags that name nothing.
    """
    if request.workload is not None:
        return _with_trace(_narrowed(_flagged(request.workload, request), request), profile)
    model = _model(request.model)
    topology = parse_topology(request.target) if request.target is not None else None
    if profile is not None:
        return _inferred(request, profile, model, topology)
    return _from_flags(request, model, topology)


def _flagged(workload: Workload, request: DiagnoseRequest) -> Workload:
    """The workload file with each given flag in place of its field."""
    changes: dict[str, Any] = {
        name: value
        for name in ("phase", "objective", "global_batch", "sequence")
        if (value := getattr(request, name)) is not None
    }
    if request.model is not None:
        changes["model"] = _model(request.model)
    if request.target is not None:
        changes["topology"] = parse_topology(request.target)
    if not changes:
        return workload
    moved = changes.keys() & {"model", "topology", "global_batch", "sequence", "phase"}
    if moved:
        # A measurement of another job says nothing of this one.
        changes["baseline_measured"] = None
    return workload.model_copy(update=changes)


def _model(name: str | None) -> ModelSpec | None:
    if name is None:
        return None
    path = Path(name)
    if path.suffix == ".json" or path.is_dir():
        from prompts_agent.model.hf_config import from_hf_config

        return from_hf_config(path)
    return find_model(name)


def _inferred(
    request: DiagnoseRequest, profile: Profile, model: ModelSpec | None, topology: Topology | None
) -> Job:
    from prompts_agent.agents.inference import infer

    found = infer(request, profile, model, topology)
    if found.workload is None:
        return Job(missing=tuple(dict.fromkeys(_cure(what) for what in found.missing)))
    # What is missing beside a workload is its baseline, for which `today_of` has a sentence.
    return _with_trace(_narrowed(found.workload, request), profile)


def _cure(missing: str) -> str:
    """What to give so that `missing`, a sentence of the inference, is known."""
    cures = {
        "the model": GIVE_MODEL,
        "the hardware": GIVE_TARGET,
        "the phase": GIVE_PHASE,
        "the global batch": GIVE_BATCH,
        "the sequence": GIVE_SEQUENCE,
    }
    found = (cure for start, cure in cures.items() if missing.startswith(start))
    return next(found, f"Say it in a workload file, --workload FILE: {missing}.")


def _from_flags(
    request: DiagnoseRequest, model: ModelSpec | None, topology: Topology | None
) -> Job:
    missing = []
    if model is None:
        missing.append(GIVE_MODEL)
    if topology is None:
        missing.append(GIVE_TARGET)
    if request.global_batch is None:
        missing.append(GIVE_BATCH)
    if request.sequence is None:
        missing.append(GIVE_SEQUENCE)
    if (
        model is None
        or topology is None
        or request.global_batch is None
        or request.sequence is None
    ):
        return Job(missing=tuple(missing))
    assumed = []
    if request.phase is None:
        assumed.append("The phase is not stated; pretrain is assumed.")
    if request.objective is None:
        assumed.append("The objective is not stated; throughput is assumed.")
    workload = Workload(
        name=f"{model.name} on {topology}",
        model=model,
        topology=topology,
        phase=request.phase or Phase.PRETRAIN,
        objective=request.objective or Objective.THROUGHPUT,
        global_batch=request.global_batch,
        sequence=request.sequence,
        precision=_precision(request.phase),
        assumptions=tuple(assumed),
    )
    return Job(workload=_narrowed(workload, request))


def _precision(phase: Phase | None) -> Precision:
    """A server holds its weights in bf16 unless somebody says otherwise; a trainer in fp32."""
    serves = phase is not None and not phase.is_training
    return Precision(weights="bf16") if serves else Precision()


def _narrowed(workload: Workload, request: DiagnoseRequest) -> Workload:
    """The workload in the space of the request's framework."""
    if not request.constraints.model_fields_set:
        return workload
    training = workload.phase.is_training
    narrowed = narrow(workload.constraints, request.constraints, training=training)
    return workload.model_copy(update={"constraints": narrowed})


def _with_trace(workload: Workload, profile: Profile | None) -> Job:
    """The workload, with today's layout and step time from the trace where they are its own."""
    if profile is None:
        return Job(workload=workload)
    today: Today = today_of(workload, profile)
    return Job(
        workload=calibrated(workload, today, profile),
        caveats=today.caveats,
        axes=today.axes,
        traced=today.degrees,
    )
