"""Reading a workload file: the YAML that a person writes by hand (schema: workloads/README.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from prompts_agent.errors import PromptsError, WorkloadError
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.legality import RULES
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.model.catalog import find_model
from prompts_agent.model.hf_config import from_hf_config
from prompts_agent.model.spec import ModelSpec
from prompts_agent.workload.complete import Surroundings, complete_layout, open_knobs
from prompts_agent.workload.document import Document, KeyPath, read_document
from prompts_agent.workload.form import KnobsForm, LayoutForm, MeasuredForm, WorkloadForm
from prompts_agent.workload.problems import readable
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Adopted, Measured, Workload

__all__ = ["UNSOURCED", "load_workload"]

T = TypeVar("T")
R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)

UNSOURCED = "the workload file"
"""The source of figures in a file that names none."""

_PRODUCTS = tuple(rule for rule in RULES if rule.name in ("devices", "domains"))


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
    source = form.source or UNSOURCED
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
        framework=form.framework,
        dropless=form.dropless,
        traffic=form.traffic,
        constraints=form.constraints,
        baseline=baseline,
        baseline_measured=_measured(form.baseline, baseline, source),
        adopted=_adopted(form, around, document),
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
        given = {"name": document.file.stem, "family": "custom", "source": UNSOURCED}
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
    return complete_layout(form.mesh, form.knobs(), around)


def _measured(form: KnobsForm | None, layout: Layout | None, source: str) -> Measured | None:
    out_of_memory = isinstance(form, LayoutForm) and form.out_of_memory
    if form is None or layout is None or not (form.measured or out_of_memory):
        return None
    measured = form.measured or MeasuredForm()
    values = measured.model_dump() | {"source": measured.source or source, "layout": layout}
    values["out_of_memory"] = measured.out_of_memory or out_of_memory
    values["open_knobs"] = open_knobs(form.knobs())
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


def _adopted(form: WorkloadForm, around: Surroundings, document: Document) -> Adopted | None:
    adopted, topology = form.adopted, around.topology
    if adopted is None:
        return None
    degrees = {a: n if isinstance(n, int) else n.size for a, n in adopted.degrees.items()}
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
    layout, _ = complete_layout(adopted.degrees, adopted.knobs(), around)
    source = adopted.source or form.source or UNSOURCED
    return Adopted(
        degrees=degrees,
        source=source,
        speedup=adopted.speedup,
        layout=layout,
        measured=_measured(adopted, layout, source),
    )


def _refuse_wrong_products(workload: Workload, document: Document) -> None:
    """A mesh for another number of devices describes another job; other rules are for the check."""
    space = search_space(workload)
    layouts: list[tuple[KeyPath, Layout]] = [
        (("alternatives", i, "mesh"), row.layout) for i, row in enumerate(workload.alternatives)
    ]
    if workload.adopted is not None and workload.adopted.layout is not None:
        layouts.insert(0, (("adopted", "degrees"), workload.adopted.layout))
    if workload.baseline is not None:
        layouts.insert(0, (("baseline", "mesh"), workload.baseline))
    for path, layout in layouts:
        table = LayoutTable.of([layout])
        for rule in _PRODUCTS:
            if not rule.mask(table, space)[0]:
                words = rule.words(layout, space)
                raise WorkloadError(document.where(path), rule=words.text, cure=words.cure)
