"""Linting a config: is its layout legal, and can it fit?"""

from __future__ import annotations

import math

from prompts_agent.emit.existing.existing import Existing, Fault
from prompts_agent.emit.existing.layout import Placed, devices_of, flat, global_batch_of, place
from prompts_agent.emit.existing.precision import precision_of
from prompts_agent.errors import HardwareError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.legality import check
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.rule import Check
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record
from prompts_agent.units import format_bytes
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Constraints, Phase, Workload

__all__ = ["Lint", "lint"]

# Rule → the axes, knobs and fields at whose line it is reported, the likeliest first.
PLACES: dict[str, tuple[str, ...]] = {
    "heads": ("tensor",),
    "kv_heads": ("tensor", "attention_data"),
    "kv_repeated": ("tensor",),
    "mlp": ("tensor",),
    "vocab": ("tensor",),
    "embed": ("fsdp", "context"),
    "embed_uneven": ("fsdp", "context"),
    "experts": ("expert",),
    "expert_divides": ("expert",),
    "layers": ("pipeline",),
    "virtual_stages": ("virtual_stages", "pipeline"),
    "interleaved": ("virtual_stages", "pipeline"),
    "microbatches_in_flight": ("gradient_accumulation", "microbatch", "batch", "pipeline"),
    "batch_shards": ("batch", "fsdp", "data"),
    "batch": ("batch", "microbatch"),
    "context": ("context",),
    "context_balance": ("context",),
    "sequence_parallel": ("sequence_parallel", "tensor"),
    "attention_data": ("attention_data", "tensor"),
    "near_axes": ("tensor", "context"),
    "serving_axes": ("fsdp",),
}
_OF_HARDWARE = frozenset(("devices", "domains", "rank_order", "near_axes", "embed", "embed_uneven"))
_OF_BATCH = frozenset(("batch", "batch_shards", "microbatches_in_flight"))
_OF_SEQUENCE = frozenset(("context", "context_balance"))
_STAND_IN = "h100"
_ANY_SEQUENCE = 4096


class Lint(Record):
    """What was found, and what could not be checked."""

    faults: tuple[Fault, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """No fault but notes."""
        return all(fault.note for fault in self.faults)


def lint(
    existing: Existing,
    *,
    topology: Topology | None,
    model: ModelSpec | None,
    global_batch: int | None = None,
    sequence: int | None = None,
) -> Lint:
    """Every fault of the config, by line.

    What rests on something that is None is not checked, and `unchecked` says so.
    """
    faults = list(existing.faults)
    where = topology if existing.training else _served(existing, topology)
    started = _started(existing) if topology is None else None
    if started is not None:
        faults.append(started)
    placed = place(existing, where, model=model, global_batch=global_batch) if where else Placed()
    faults += placed.faults
    real, open_sizes = placed.layout is not None, False
    if not real:
        # Rules of heads, layers and experts read degrees alone: any hardware does for them.
        open_sizes = any(size < 0 for size in (*existing.ici.values(), *existing.dcn.values()))
        existing, where = flat(existing), _stand_in(flat(existing))
        placed = place(existing, where, model=model, global_batch=global_batch)
    if placed.layout is not None and where is not None and model is not None:
        job = _job(existing, placed.layout, where, model, global_batch, sequence)
        skipped = _skipped(existing, placed.layout, job, real=real)
        if not real and open_sizes:
            skipped |= {"expert_divides"}
        faults += _broken(existing, placed.layout, job, skipped)
        if real and not _OF_SEQUENCE & skipped:
            faults += _too_large(existing, placed.layout, job)
    return Lint(
        faults=tuple(sorted(faults, key=lambda fault: (fault.note, fault.line))),
        unchecked=tuple(_unchecked(existing, topology, model)),
    )


def _served(existing: Existing, topology: Topology | None) -> Topology | None:
    """A server may leave devices idle: the part of the target that it takes."""
    devices = devices_of(existing)
    if topology is None or devices is None or devices >= topology.devices:
        return topology
    try:
        return Topology.for_device_count(find_chip(topology.chip), devices)
    except HardwareError:
        return topology


def _started(existing: Existing) -> Fault | None:
    """Ranks that the script starts, and that its own degrees do not divide."""
    product = math.prod(abs(size) for size in flat(existing).ici.values())
    if existing.knobs.get("expert_divides"):
        product //= abs(existing.ici.get(Axis.EXPERT, 1))
    if existing.devices is None or existing.devices % product == 0:
        return None
    return Fault(
        line=existing.line("hosts", "devices"),
        rule="devices",
        text=f"the script starts {existing.devices} ranks, and its degrees need a multiple of "
        f"{product}",
        cure="Mend the nodes or the degrees; --target says what they will be.",
        note=True,
    )


def _unchecked(existing: Existing, topology: Topology | None, model: ModelSpec | None) -> list[str]:
    found = [
        f"line {item.line}: {item.key} = {item.value}: {item.why}" for item in existing.unknown
    ]
    if model is None:
        found.append("heads, layers, experts and memory: give --model")
    if topology is None:
        found.append("devices, domains and memory: give --target")
    return found


def _stand_in(existing: Existing) -> Topology:
    """Hardware of as many devices as the sizes multiply to: nodes of one GPU, in any number."""
    return Topology.of(find_chip(_STAND_IN), (devices_of(existing) or 1, 1))


def _skipped(existing: Existing, layout: Layout, job: Workload, *, real: bool) -> frozenset[str]:
    """Rules that rest on what nobody gave, or on hardware that only stands in."""
    found: set[str] = {"constraints", "knob_constraints"}
    if not real:
        found |= _OF_HARDWARE | _OF_BATCH
    smallest = layout.batch_shards * layout.microbatch * layout.gradient_accumulation
    unknown = global_batch_of(existing, layout) is None and job.global_batch == smallest
    if not existing.training or unknown:
        found |= _OF_BATCH
    if existing.training and existing.sequence is None and job.sequence == _ANY_SEQUENCE:
        found |= _OF_SEQUENCE
    return frozenset(found)


def _job(
    existing: Existing,
    layout: Layout,
    topology: Topology,
    model: ModelSpec,
    global_batch: int | None,
    sequence: int | None,
) -> Workload:
    """The least job that the config can be for: one sequence a shard where nobody gives a batch."""
    batch = global_batch or global_batch_of(existing, layout)
    smallest = layout.batch_shards * layout.microbatch * layout.gradient_accumulation
    if not existing.training:
        # max-num-seqs is a limit, not a load: a server starts with one sequence a replica.
        batch = global_batch or layout.batch_shards
    return Workload(
        name=existing.file,
        model=model,
        topology=topology,
        phase=Phase.PRETRAIN if existing.training else Phase.DECODE,
        global_batch=batch or smallest,
        sequence=sequence or existing.sequence or _sequence(existing, model),
        precision=precision_of(existing),
        constraints=Constraints(
            expert_divides=layout.expert_divides, weights_over_context=layout.weights_over_context
        ),
        baseline=layout,
    )


def _sequence(existing: Existing, model: ModelSpec) -> int:
    """A server takes the model's longest; of a trainer nothing is known."""
    longest = model.max_sequence if not existing.training else None
    return longest or _ANY_SEQUENCE


def _broken(
    existing: Existing, layout: Layout, job: Workload, skipped: frozenset[str]
) -> list[Fault]:
    return [
        _fault(existing, item)
        for item in check(layout, search_space(job))
        if not item.ok and item.rule not in skipped
    ]


def _fault(existing: Existing, item: Check) -> Fault:
    places = PLACES.get(item.rule, ())
    line = existing.line(*places) or existing.line(*(axis.value for axis in reversed(Axis)))
    return Fault(line=line, rule=item.rule, text=item.text, cure=item.cure, note=not item.forbids)


def _too_large(existing: Existing, layout: Layout, job: Workload) -> list[Fault]:
    """Where even the lower end of the estimate is above what the chip has, nothing can fit."""
    from prompts_agent.estimate.estimator import estimate, usable_hbm_bytes
    from prompts_agent.layout.table import LayoutTable

    found = estimate(LayoutTable.of([layout]), job)
    limit, least = usable_hbm_bytes(job), float(found.hbm_low_bytes[0])
    likely = float(found.hbm_bytes[0])
    if likely <= limit:
        return []
    terms = {
        name.removeprefix("memory.").removesuffix("_bytes"): float(column[0])
        for name, column in found.terms.items()
        if name.startswith("memory.")
    }
    most = sorted(terms, key=lambda name: -terms[name])[:2]
    spelled = ", ".join(f"{name} {format_bytes(int(terms[name]))}" for name in most)
    surely = least > limit
    need = f"{'at least' if surely else 'about'} {format_bytes(int(least if surely else likely))}"
    return [
        Fault(
            line=existing.line("tensor", "fsdp", "pipeline", "data", "batch"),
            rule="memory",
            text=f"a device needs {need} ({spelled}) of {format_bytes(int(limit))} usable",
            cure="Cut weights or activations more: `prompts plan` lists the layouts that fit.",
            note=not surely,
        )
    ]
