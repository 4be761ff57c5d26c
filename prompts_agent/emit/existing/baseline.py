"""A plan that starts from the user's own config: its layout is the baseline, its job is the job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prompts_agent.emit.existing.check import model_of, named_model
from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.layout import devices_of, global_batch_of, place
from prompts_agent.emit.existing.precision import precision_of
from prompts_agent.errors import InputError
from prompts_agent.hardware.topology import Topology, parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.legality import check
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Constraints, Objective, Phase, Workload

__all__ = ["disagreement", "flags_from", "workload_from"]


def workload_from(
    existing: Existing, flags: Mapping[str, Any], workload: Workload | None
) -> Workload | None:
    """The job with the config's layout as its baseline; None where the job is not known.

    A workload file goes before flags, and flags before what the config says of its job. Raises
    `InputError` where the layout cannot be placed on the hardware.
    """
    topology = workload.topology if workload is not None else None
    if flags.get("target") is not None:
        topology = parse_topology(flags["target"])
    if topology is None:
        return None
    batch = flags.get("global_batch") or (workload.global_batch if workload is not None else None)
    layout, assumed = _layout(existing, topology, batch)
    job = _job(existing, flags, topology, layout) if workload is None else workload
    if job is None:
        return None
    job = job.model_copy(update={"topology": topology, "baseline": layout})
    broken = [item for item in check(layout, search_space(job)) if item.forbids and not item.ok]
    if broken:
        name = Path(existing.file).name
        why = f"The layout of {name} is not legal here, so it is not compared: {broken[0].text}."
        assumed = (why,)
    return job.model_copy(
        update={
            "baseline": None if broken else layout,
            "baseline_measured": None,
            "assumptions": (*job.assumptions, *assumed, *_not_understood(existing)),
        }
    )


def flags_from(existing: Existing, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags, filled with what the config says, so that only what neither says is asked for."""
    said: dict[str, object] = {
        "model": existing.model if model_of(existing) is not None else None,
        "sequence": existing.sequence,
        "global_batch": existing.global_batch,
    }
    return {**flags, **{name: said[name] for name in said if flags.get(name) is None}}


def disagreement(existing: Existing, ran: Layout) -> str | None:
    """A sentence where the config sets other degrees than the traced job ran with."""
    degrees = {axis: size * existing.dcn.get(axis, 1) for axis, size in existing.ici.items()}
    apart = [
        f"{axis} {size}, not {ran.mesh.size(axis)}"
        for axis, size in degrees.items()
        if size > 0 and size != ran.mesh.size(axis)  # -1 is open
    ]
    if not apart:
        return None
    name = Path(existing.file).name
    return f"{name} sets {' and '.join(apart)} as in the trace: its lines, the trace's figures."


def _layout(
    existing: Existing, topology: Topology, batch: int | None
) -> tuple[Layout, tuple[str, ...]]:
    servers = _servers(existing, topology)
    if servers > 1:
        data = servers * existing.ici.get(Axis.DATA, 1)
        existing = existing.model_copy(update={"ici": existing.ici | {Axis.DATA: data}})
    placed = place(existing, topology, model=model_of(existing), global_batch=batch)
    if placed.layout is None:
        fault = placed.faults[0]
        where = f"{existing.file}:{fault.line}" if fault.line else existing.file
        raise InputError(where, rule=fault.text, cure=fault.cure)
    assumed = placed.assumptions
    if servers > 1:
        assumed = (*assumed, f"{servers} servers of the config are taken to fill {topology}.")
    return placed.layout, assumed


def _servers(existing: Existing, topology: Topology) -> int:
    """How many servers of the config the target holds; 1 for a trainer, which takes it whole."""
    devices = devices_of(existing)
    if existing.training or devices is None or topology.devices % devices:
        return 1
    return topology.devices // devices


def _job(
    existing: Existing, flags: Mapping[str, Any], topology: Topology, layout: Layout
) -> Workload | None:
    named = flags.get("model")
    model = named_model(named) if named is not None else model_of(existing)
    batch = flags.get("global_batch") or global_batch_of(existing, layout)
    sequence = flags.get("sequence") or existing.sequence
    if model is None or batch is None or sequence is None:
        return None
    phase = flags.get("phase") or (Phase.PRETRAIN if existing.training else Phase.SERVE)
    return Workload(
        name=f"{model.name} on {topology}",
        model=model,
        topology=topology,
        phase=Phase(phase),
        objective=Objective(flags.get("objective") or Objective.THROUGHPUT),
        global_batch=batch,
        sequence=sequence,
        precision=precision_of(existing),
        constraints=Constraints(
            expert_divides=layout.expert_divides, weights_over_context=layout.weights_over_context
        ),
    )


def _not_understood(existing: Existing) -> tuple[str, ...]:
    name = Path(existing.file).name
    return tuple(
        f"{name}:{item.line}: {item.key} = {item.value} is not taken into account: {item.why}."
        for item in existing.unknown
    )
