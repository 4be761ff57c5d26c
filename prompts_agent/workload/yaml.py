"""Reading a workload file: the YAML that a person writes by hand (schema: workloads/README.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from prompts_agent.errors import PromptsError, WorkloadError
from prompts_agent.hardware.topology import Topology, parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.legality import check
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.catalog import find_model
from prompts_agent.model.hf_config import from_hf_config
from prompts_agent.model.spec import ModelSpec
from prompts_agent.workload.complete import Surroundings, complete_layout
from prompts_agent.workload.document import Document, KeyPath, read_document
from prompts_agent.workload.form import LayoutForm, MeasuredForm, WorkloadForm
from prompts_agent.workload.problems import readable
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Adopted, Measured, Workload

__all__ = ["load_workload"]

T = TypeVar("T")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)

_HERE = "the workload file"


def load_workload(path: Path | str) -> Workload:
    """Read a workload file.

    A model may be a name, the path of a config.json (relative to the file) or a mapping of
    ModelSpec's fields. Raises `WorkloadError`, which names the file, the line, the key, the value,
    the rule and the cure.
    """
    document = read_document(Path(path))
    data = _mapping(document)
    # A model that is written out is checked as what it is; the form has its place only.
    written = isinstance(data.get("model"), dict)
    form = _validated(WorkloadForm, data | ({"model": ""} if written else {}), document, ())
    model = _model(data["model"], document)
    topology = _called(document, ("hardware",), parse_topology, form.hardware)
    around = Surroundings(
        topology=topology,
        phase=form.phase,
        global_batch=form.global_batch,
        constraints=form.constraints,
        precision=form.precision,
    )
    source = form.source or _HERE
    baseline, assumed = _layout(form.baseline, around)
    workload = Workload(
        name=form.name or document.file.stem,
        model=model,
        topology=topology,
        phase=form.phase,
        global_batch=form.global_batch,
        sequence=form.sequence,
        objective=form.objective,
        precision=form.precision,
        traffic=form.traffic,
        constraints=form.constraints,
        baseline=baseline,
        baseline_measured=_measured(form.baseline, baseline, source),
        adopted=_adopted(form, topology, document),
        alternatives=_alternatives(form, around, source),
        assumptions=(*form.assumptions, *assumed),
        source=form.source,
    )
    _refuse_wrong_products(workload, document)
    return workload


def _mapping(document: Document) -> dict[str, object]:
    if not isinstance(document.value, dict):
        raise WorkloadError(
            document.where(()),
            rule="a workload file is a mapping of keys",
            cure="Write `model: …`, `hardware: …`; see workloads/README.md.",
        )
    return document.value


def _validated(record: type[M], data: object, document: Document, path: KeyPath) -> M:
    """Strict JSON mode: "256" is no number and `true` is not 1."""
    try:
        return record.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise readable(error, record, document, path) from error
    except PromptsError as error:
        raise _located(error, document, path) from error


def _model(value: object, document: Document) -> ModelSpec:
    """By name, from a config.json beside the file, or from its dims."""
    if isinstance(value, dict):
        given = {"name": document.file.stem, "family": "custom", "source": _HERE}
        return _validated(ModelSpec, given | value, document, ("model",))
    name = str(value)
    beside = document.file.parent / name
    if name.endswith(".json") or beside.is_dir():
        return _called(document, ("model",), from_hf_config, beside)
    return _called(document, ("model",), find_model, name)


def _called(document: Document, path: KeyPath, function: Callable[[T], R], value: T) -> R:
    try:
        return function(value)
    except PromptsError as error:
        raise _located(error, document, path) from error


def _located(error: PromptsError, document: Document, path: KeyPath) -> WorkloadError:
    return WorkloadError(f"{document.where(path)}: {error.value}", rule=error.rule, cure=error.cure)


def _layout(form: LayoutForm | None, around: Surroundings) -> tuple[Layout | None, tuple[str, ...]]:
    if form is None:
        return None, ()
    outside = {"mesh", "measured", "out_of_memory"}
    knobs = {
        name: getattr(form, name)
        for name in LayoutForm.model_fields
        if name not in outside and getattr(form, name) is not None
    }
    return complete_layout(form.mesh, knobs, around)


def _measured(form: LayoutForm | None, layout: Layout | None, source: str) -> Measured | None:
    if form is None or layout is None or not (form.measured or form.out_of_memory):
        return None
    measured = form.measured or MeasuredForm()
    values = measured.model_dump() | {"source": measured.source or source, "layout": layout}
    values["out_of_memory"] = measured.out_of_memory or form.out_of_memory
    return Measured(**values)


def _alternatives(form: WorkloadForm, around: Surroundings, source: str) -> tuple[Measured, ...]:
    found = []
    for alternative in form.alternatives:
        layout, _ = _layout(alternative, around)
        bare = alternative.model_copy(update={"measured": alternative.measured or MeasuredForm()})
        measured = _measured(bare, layout, source)
        if measured is not None:
            found.append(measured)
    return tuple(found)


def _adopted(form: WorkloadForm, topology: Topology, document: Document) -> Adopted | None:
    if form.adopted is None:
        return None
    degrees = form.adopted.degrees
    product = 1
    for axis, size in degrees.items():
        product *= 1 if form.constraints.expert_divides and axis is Axis.EXPERT else size
    if product != topology.devices:
        spelled = " × ".join(f"{axis} {size}" for axis, size in degrees.items())
        raise WorkloadError(
            f"{document.where(('adopted', 'degrees'))}: {spelled} = {product} devices",
            rule=f"{topology} has {topology.devices}",
            cure="Mend an axis or the hardware.",
        )
    return Adopted(
        degrees=degrees,
        source=form.adopted.source or form.source or _HERE,
        speedup=form.adopted.speedup,
    )


def _refuse_wrong_products(workload: Workload, document: Document) -> None:
    """A mesh for another number of devices describes another job; other rules are for the check."""
    space = search_space(workload)
    layouts: list[tuple[KeyPath, Layout]] = [
        (("alternatives", i, "mesh"), row.layout) for i, row in enumerate(workload.alternatives)
    ]
    if workload.baseline is not None:
        layouts.insert(0, (("baseline", "mesh"), workload.baseline))
    for path, layout in layouts:
        for found in check(layout, space):
            if found.rule in ("devices", "domains") and not found.ok:
                raise WorkloadError(document.where(path), rule=found.text, cure=found.cure)
