"""Completing a layout that a person or a program left partly open, and saying what was assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.domains import domain_size, mesh_over_domains
from prompts_agent.layout.layout import Layout, PipelineSchedule, Remat
from prompts_agent.layout.mesh import Axis, AxisSize, Mesh
from prompts_agent.layout.table import KV_DTYPES
from prompts_agent.workload.workload import Constraints, Phase, Precision

__all__ = ["Surroundings", "complete_layout", "open_knobs"]

_BATCH = ("microbatch", "gradient_accumulation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a layout's open knobs follow from."""

    topology: Topology
    phase: Phase
    global_batch: int
    constraints: Constraints
    precision: Precision


def complete_layout(
    mesh: Mapping[Axis, int | AxisSize], knobs: Mapping[str, Any], around: Surroundings
) -> tuple[Layout, tuple[str, ...]]:
    """The layout of `mesh` and the given knobs, and a sentence for each that had to be assumed.

    Sizes without a split fill the fast domains innermost first. Microbatch and accumulation follow
    from the global batch: one pass over the whole batch of a shard, or, in a pipeline, microbatches
    of one sequence. Nothing here makes an illegal layout legal.
    """
    settings = {
        "expert_divides": around.constraints.expert_divides,
        "weights_over_context": around.constraints.weights_over_context,
    } | dict(knobs)
    if settings.get("virtual_stages", 1) > 1:
        settings.setdefault("schedule", PipelineSchedule.INTERLEAVED)
    if around.precision.kv_cache in KV_DTYPES:
        settings.setdefault("kv_dtype", around.precision.kv_cache)
    whole = _mesh(mesh, around.topology, expert_divides=settings["expert_divides"])
    layout = Layout(mesh=whole, **settings)
    if not around.phase.is_training:
        return layout, ()
    assumed = []
    if "remat" not in settings:
        assumed.append(f"Remat is not stated; {Remat.FULL} is assumed.")
    batch = _batch(layout, settings, around.global_batch)
    if not {"microbatch", "gradient_accumulation"} & set(settings):
        assumed.append(
            f"Microbatch and gradient accumulation are not stated; {batch['microbatch']} and "
            f"{batch['gradient_accumulation']} are assumed."
        )
    return layout.model_copy(update=batch), tuple(assumed)


def open_knobs(knobs: Mapping[str, Any]) -> tuple[str, ...]:
    """The knobs that change a training step's time or memory and that `knobs` does not state.

    Of microbatch and accumulation one decides the other.
    """
    named = ("remat", "sequence_parallel", "virtual_stages")
    found = [name for name in named if name not in knobs]
    return (*found, *(_BATCH if not set(_BATCH) & set(knobs) else ()))


def _mesh(
    sizes: Mapping[Axis, int | AxisSize], topology: Topology, *, expert_divides: bool
) -> Mesh:
    degrees = {axis: size for axis, size in sizes.items() if isinstance(size, int)}
    if len(degrees) == len(sizes):
        domain = domain_size(topology)
        return mesh_over_domains(degrees, domain, expert_divides=expert_divides)
    # One explicit split means that all are meant as written.
    return Mesh.model_validate(
        {a.value: {"ici": s} if isinstance(s, int) else s.model_dump() for a, s in sizes.items()}
    )


def _batch(layout: Layout, settings: Mapping[str, Any], global_batch: int) -> dict[str, int]:
    """The two knobs whose product is one shard's batch; as given where it does not come out."""
    per_shard, rest = divmod(global_batch, layout.batch_shards)
    given = {k: settings[k] for k in ("microbatch", "gradient_accumulation") if k in settings}
    if rest or len(given) == 2:
        return {"microbatch": 1, "gradient_accumulation": 1} | given
    if not given:
        piped = layout.mesh.size(Axis.PIPELINE) > 1
        microbatch = 1 if piped else per_shard
        return {"microbatch": microbatch, "gradient_accumulation": per_shard // microbatch}
    (name, value), other = next(iter(given.items())), per_shard // next(iter(given.values()))
    open_knob = "gradient_accumulation" if name == "microbatch" else "microbatch"
    return {name: value, open_knob: max(other, 1)}
