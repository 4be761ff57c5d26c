"""From an Existing to a Layout: sizes of -1 take what is left, open knobs are assumed aloud."""

from __future__ import annotations

import math
from typing import Any

from prompts_agent.emit.existing.existing import Existing, Fault
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.domains import domains
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, AxisSize
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record
from prompts_agent.workload.complete import Surroundings, complete_layout
from prompts_agent.workload.workload import Constraints, Phase, Precision

__all__ = ["Placed", "devices_of", "flat", "global_batch_of", "place"]

_MOST_DEVICES = 1 << 24


class Placed(Record):
    """The layout on its hardware, with a sentence for each knob that had to be assumed."""

    layout: Layout | None = None
    assumptions: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    """Why there is no layout."""


def devices_of(existing: Existing) -> int | None:
    """Devices that the config itself names: by hosts, or by sizes that leave nothing open."""
    if existing.devices is not None:
        return existing.devices
    divides = bool(existing.knobs.get("expert_divides"))
    counted = [n for axis, n in existing.ici.items() if not (divides and axis is Axis.EXPERT)]
    sizes = [*counted, *existing.dcn.values()]
    return math.prod(sizes) if all(size > 0 for size in sizes) else None


def global_batch_of(existing: Existing, layout: Layout) -> int | None:
    """Sequences a step; None where the config leaves it open."""
    if existing.global_batch is not None:
        return existing.global_batch
    if existing.per_device_batch is None:
        return None
    piped = layout.mesh.size(Axis.PIPELINE) > 1
    passes = 1 if piped else layout.gradient_accumulation
    return max(1, round(existing.per_device_batch * layout.devices * passes))


def place(
    existing: Existing,
    topology: Topology,
    *,
    model: ModelSpec | None = None,
    global_batch: int | None = None,
) -> Placed:
    """The config's layout on `topology`, with the batch that it or `global_batch` gives.

    A batch that nobody gives is one pass of the smallest, which is what `assumptions` then says.
    """
    sizes, fault = _sizes(existing, topology)
    if fault is None and math.prod(abs(n) for n in existing.ici.values()) > _MOST_DEVICES:
        text = f"the degrees multiply to more than {_MOST_DEVICES} devices"
        fault = Fault(line=existing.line(*existing.ici), rule="size", text=text, cure="Mend one.")
    if fault is not None:
        return Placed(faults=(fault,))
    knobs = existing.knobs | _chunks(existing, sizes, model)
    around = Surroundings(
        topology=topology,
        phase=Phase.PRETRAIN if existing.training else Phase.SERVE,
        global_batch=1,
        constraints=Constraints(),
        precision=Precision(),
    )
    bare, _ = complete_layout(sizes, knobs, around)
    batch = global_batch or global_batch_of(existing, bare)
    smallest = bare.batch_shards * bare.microbatch * bare.gradient_accumulation
    around = Surroundings(
        topology=topology,
        phase=around.phase,
        global_batch=batch or smallest,
        constraints=around.constraints,
        precision=around.precision,
    )
    layout, assumed = complete_layout(sizes, knobs, around)
    if batch is None and existing.training:
        assumed = (*assumed, f"The config gives no batch; {smallest} sequences are assumed.")
    return Placed(layout=layout, assumptions=assumed)


def flat(existing: Existing) -> Existing:
    """The config with every open size at one and no split, for rules that read degrees alone."""
    sizes = {a: abs(n) * abs(existing.dcn.get(a, 1)) for a, n in existing.ici.items()}
    return existing.model_copy(update={"ici": sizes, "dcn": {}, "split": False, "devices": None})


def _sizes(
    existing: Existing, topology: Topology
) -> tuple[dict[Axis, int | AxisSize], Fault | None]:
    if not existing.split:
        degrees, fault = _filled(existing, existing.ici, topology.devices, f"{topology}")
        return dict(degrees), fault
    slices = domains(topology)
    inside = topology.devices // slices
    where = f"{topology}" if slices == 1 else f"each slice of {topology}"
    ici, fault = _filled(existing, existing.ici, inside, where, part="ici")
    dcn, other = _filled(existing, existing.dcn, slices, f"{topology}", part="dcn", what="slices")
    sizes: dict[Axis, int | AxisSize] = {
        axis: AxisSize(ici=max(1, ici.get(axis, 1)), dcn=max(1, dcn.get(axis, 1))) for axis in Axis
    }
    return sizes, fault or other


def _filled(
    existing: Existing,
    sizes: dict[Axis, int],
    total: int,
    where: str,
    *,
    part: str = "",
    what: str = "devices",
) -> tuple[dict[Axis, int], Fault | None]:
    """`sizes` with the -1 among them set; a fault where they do not multiply to `total`."""
    divides = bool(existing.knobs.get("expert_divides"))
    counted = {a: n for a, n in sizes.items() if not (divides and a is Axis.EXPERT)}
    open_axes = [axis for axis, size in counted.items() if size < 0]
    used = {axis: size for axis, size in counted.items() if size > 1}
    product = math.prod(used.values())

    def fault(text: str, cure: str, *axes: Axis) -> Fault:
        roles = [role for axis in axes for role in (f"{part}.{axis}", axis.value)]
        return Fault(line=existing.line(*roles), rule="devices", text=text, cure=cure)

    if len(open_axes) > 1:
        names = " and ".join(open_axes)
        return sizes, fault(f"{names} are both -1", "Leave one of them open.", *open_axes)
    if open_axes and total % product == 0:
        return sizes | {open_axes[0]: total // product}, None
    if not open_axes and product == total:
        return sizes, None
    spelled = " × ".join(f"{axis} {size}" for axis, size in used.items()) or "every axis 1"
    relation = "does not divide" if open_axes else "is not"
    equals = f" = {product}" if len(used) > 1 else ""
    text = f"{spelled}{equals} {relation} the {total} {what} of {where}"
    cure = f"Choose sizes that {'divide' if open_axes else 'multiply to'} {total}."
    return sizes, fault(text, cure, *reversed(used), *counted)


def _chunks(
    existing: Existing, sizes: dict[Axis, int | AxisSize], model: ModelSpec | None
) -> dict[str, Any]:
    """`virtual_stages` from the layers of a chunk; left out where it does not come out."""
    pipeline = sizes.get(Axis.PIPELINE, 1)
    stages = pipeline.size if isinstance(pipeline, AxisSize) else pipeline
    if existing.layers_per_chunk is None or model is None or stages < 2:
        return {}
    virtual = -(-model.layers // (existing.layers_per_chunk * stages))
    return {"virtual_stages": virtual} if virtual > 1 else {}
