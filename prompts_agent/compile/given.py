"""Given: the layouts that a person asks about, from a workload or from `tensor=4,fsdp=16`."""

from __future__ import annotations

from pydantic import ValidationError

from prompts_agent.errors import LayoutError, WorkloadError
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.axis_names import axis_named
from prompts_agent.workload.complete import Surroundings, complete_layout
from prompts_agent.workload.form import KnobsForm
from prompts_agent.workload.workload import Workload

__all__ = ["layout_from", "layouts_of"]


def layout_from(text: str, workload: Workload) -> tuple[Layout, tuple[str, ...]]:
    """The layout that `text` writes, and what was assumed of it.

    Axes and knobs as `name=value`, between commas: `fsdp=16,tensor=4,remat=minimal`. Raises
    `LayoutError` for a name or a value that is none, and for a mesh of another size.
    """
    degrees: dict[Axis, int] = {}
    knobs: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = part.partition("=")
        axis = axis_named(name)
        if not equals or (axis is not None and not value.strip().isdecimal()):
            raise LayoutError(
                f"layout {text!r}: {part!r}",
                rule="a layout is axes and knobs as name=value, between commas",
                cure="Write fsdp=16,tensor=4,remat=full.",
            )
        if axis is not None:
            degrees[axis] = int(value)
        else:
            knobs[name.strip().replace("-", "_")] = value.strip()
    layout, assumed = _completed(degrees, knobs, workload, text)
    if layout.devices != workload.topology.devices:
        raise LayoutError(
            f"layout {text!r}",
            rule=f"it takes {layout.devices} devices and {workload.topology} has "
            f"{workload.topology.devices}",
            cure=f"Make the product {workload.topology.devices}.",
        )
    return layout, assumed


def _completed(
    degrees: dict[Axis, int], knobs: dict[str, str], workload: Workload, text: str
) -> tuple[Layout, tuple[str, ...]]:
    around = Surroundings(
        topology=workload.topology,
        phase=workload.phase,
        global_batch=workload.global_batch,
        constraints=workload.constraints,
        precision=workload.precision,
    )
    try:
        form = KnobsForm.model_validate(knobs)
        return complete_layout(degrees, form.knobs(), around)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        names = ", ".join(sorted(set(KnobsForm.model_fields) - {"measured"}))
        raise LayoutError(
            f"layout {text!r}: {name}",
            rule="no such axis or knob" if first["type"] == "extra_forbidden" else first["msg"],
            cure=f"The axes are {', '.join(Axis)}; the knobs are {names}.",
        ) from error


def layouts_of(workload: Workload) -> dict[str, Layout]:
    """The layouts that a workload names, by where it names them, each once.

    Raises `WorkloadError` where it names none.
    """
    named: dict[str, Layout] = {}
    if workload.baseline is not None:
        named["baseline"] = workload.baseline
    if workload.adopted is not None and workload.adopted.layout is not None:
        named["adopted"] = workload.adopted.layout
    named |= {f"alternative {i}": row.layout for i, row in enumerate(workload.alternatives, 1)}
    found: dict[str, Layout] = {}
    for name, cut in named.items():
        if cut not in found.values():
            found[name] = cut
    if not found:
        raise WorkloadError(
            f"workload {workload.name}",
            rule="it names no layout to compile",
            cure="Give one: --layout fsdp=16,tensor=4.",
        )
    return found
