"""The flat list of facts: every number of the profile under a stable id, with unit and source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from prompts_agent.trace.measure.device import DeviceMeasure, device_name
from prompts_agent.trace.profile import CollectiveUse, Fact, OpUse, Profile
from prompts_agent.units import seconds_from_ps

__all__ = ["Extras", "facts_of", "slug"]

_OP_FACTS = 10
_DEVICE_FACTS = 64


@dataclass(slots=True)
class Extras:
    """Numbers that are facts but no fields of a profile, and sources by fact id."""

    planned_bytes: int | None = None
    compile_s: float | None = None
    mfu: float | None = None
    sources: dict[str, str] = field(default_factory=dict)


def slug(text: str) -> str:
    """A name as part of a fact id: `data+model` is `data-model`."""
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-") or "unknown"


def facts_of(
    profile: Profile,
    measures: Sequence[DeviceMeasure],
    main: DeviceMeasure | None,
    extras: Extras,
) -> tuple[Fact, ...]:
    """All facts of a profile."""
    facts = [
        *_job(profile, extras),
        *(() if profile.structure_only else _times(profile, main)),
        *(() if profile.structure_only else _waits(measures)),
        *(fact for use in profile.collectives for fact in _collective(use)),
        *(() if profile.structure_only else _ops(profile.top_ops)),
    ]
    unique: dict[str, Fact] = {}
    for fact in facts:
        unique.setdefault(fact.id, fact)
    return tuple(unique.values())


def _fact(id_: str, name: str, value: float | str | None, unit: str, source: str) -> Iterator[Fact]:
    if value is not None:
        yield Fact(id=id_, name=name, value=value, unit=unit, source=source)


def _job(profile: Profile, extras: Extras) -> Iterator[Fact]:
    trace = "device planes with events"
    yield from _fact("devices.trace", "Devices measured", profile.devices_in_trace, "1", trace)
    yield from _fact(
        "devices.job", "Devices of the job", profile.devices_in_job, "1",
        "device assignment of the largest program",
    )  # fmt: skip
    yield from _fact("hosts", "Hosts", profile.hosts, "1", "trace files")
    yield from _fact("device.label", "Device", profile.device_label, "", "device plane")
    yield from _fact("device.kind", "Chip", profile.device_kind, "", "hardware table, by label")
    for axis in profile.mesh:
        yield from _fact(
            f"mesh.{slug(axis.name)}", f"Mesh axis {axis.name}", axis.size, "1",
            profile.mesh_source or "program",
        )  # fmt: skip
    for id_, name, value, unit in (
        ("hbm.peak", "Peak memory of a device", profile.hbm_peak_bytes, "B"),
        ("hbm.planned", "Memory planned by the compiler", extras.planned_bytes, "B"),
        ("hbm.capacity", "Memory of a device", profile.hbm_capacity_bytes, "B"),
        ("flops_per_step", "FLOPs of a device in a step", profile.flops_per_step, "FLOP"),
        ("recompilations", "Recompilations", profile.recompilations, "1"),
        ("recompile_time", "Time spent compiling again", profile.recompile_s, "s"),
        ("compile_time", "Time spent compiling", extras.compile_s, "s"),
        ("mfu", "Matrix-unit utilisation", extras.mfu, "1"),
    ):
        yield from _fact(id_, name, value, unit, extras.sources.get(id_, "trace"))


def _times(profile: Profile, main: DeviceMeasure | None) -> Iterator[Fact]:
    step = profile.step
    if step is not None:
        source = step.derived_from
        yield from _fact("step_time", "Step time", step.median_s, "s", source)
        yield from _fact("step_time.min", "Shortest step", step.min_s, "s", source)
        yield from _fact("step_time.max", "Longest step", step.max_s, "s", source)
        yield from _fact("step_count", "Steps measured", step.count, "1", source)
        yield from _fact(
            "step_period", "Step period", step.period_s, "s", f"start to start, {source}"
        )
    spread_ps = main.steps.spread_ps if main is not None and main.steps is not None else None
    yield from _fact(
        "step_time.spread",
        "Standard deviation of one step",
        None if spread_ps is None else seconds_from_ps(spread_ps),
        "s",
        "quartiles of the steps; their range where they are fewer than eight",
    )
    where = device_name(main.device) if main else "the trace"
    whole = sum(
        value for value in profile.breakdown.model_dump().values() if isinstance(value, float)
    )
    for key, value in profile.breakdown.model_dump().items():
        if value is None:
            continue
        part = key.removesuffix("_s")
        source = f"union of the op intervals of {where}, mean of its steps"
        name = part.replace("_", " ").capitalize()
        yield from _fact(f"breakdown.{part}", f"{name} per step", value, "s", source)
        if whole:
            yield from _fact(
                f"breakdown.{part}.share", f"{name}, share of the step", value / whole, "1", source
            )
    if len(profile.stragglers) > 1 and profile.stragglers[-1].step_time_s > 0:
        slowest, fastest = profile.stragglers[0], profile.stragglers[-1]
        yield from _fact(
            "straggler.spread",
            "Slowest against fastest",
            slowest.step_time_s / fastest.step_time_s,
            "1",
            f"step times of {slowest.name} and {fastest.name}",
        )


def _waits(measures: Sequence[DeviceMeasure]) -> Iterator[Fact]:
    """Totals over the whole capture: what the events sum to, not per step."""
    several = len({m.device.host for m in measures}) > 1
    for m in measures[:_DEVICE_FACTS]:
        host = f"{slug(m.device.host)}." if several else ""
        where = f"{host}device{m.device.index}"
        name = device_name(m.device)
        for part, label, total in (
            ("host_transfer", "Waiting for host memory", m.waits.host_transfer_ps),
            ("exposed_collective", "Waiting for collectives", m.waits.collective_ps),
            ("input", "Waiting for input", m.waits.input_ps),
        ):
            if total:
                yield from _fact(
                    f"{part}.{where}.total", f"{label}, {name}", seconds_from_ps(total), "s",
                    f"all waits and synchronous ops of {name} not under compute, whole capture",
                )  # fmt: skip


def _collective(use: CollectiveUse) -> Iterator[Fact]:
    id_ = f"collective.{use.kind}.{slug(use.axis or 'unknown')}"
    name = f"{use.kind} over {use.axis or 'unknown axis'}"
    source = "collective ops of a device in a step, by replica groups"
    for part, value, unit in (
        ("exposed", use.exposed_s, "s"),
        ("total", use.total_s, "s"),
        ("bytes", use.bytes, "B"),
        ("count", use.count, "1"),
    ):
        yield from _fact(f"{id_}.{part}", f"{name}, {part}", value, unit, source)


def _ops(ops: Sequence[OpUse]) -> Iterator[Fact]:
    for rank, op in enumerate(ops[:_OP_FACTS], 1):
        source = "self time on the op line, mean of the steps"
        yield from _fact(f"op.{rank}.time", f"Op {rank} per step", op.total_s, "s", source)
        yield from _fact(f"op.{rank}.share", f"Op {rank}, share of the step", op.share, "1", source)
        yield from _fact(
            f"op.{rank}.efficiency", f"Op {rank} against its ceiling", op.roofline_efficiency, "1",
            "time at the nearer ceiling of the chip ÷ measured time",
        )  # fmt: skip
