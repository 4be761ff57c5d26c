"""Summary: what a scheduled program says of one step, from two clocks over it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from prompts_agent.compile.schedule.clock_ratio import clock_ratio
from prompts_agent.compile.schedule.rates import OpCosts, Rates
from prompts_agent.compile.schedule.records import CompiledCollective, Loop, Schedule
from prompts_agent.compile.schedule.scheduled import Scheduled, read_scheduled
from prompts_agent.compile.schedule.surprises import surprises
from prompts_agent.compile.schedule.timeline import Timeline, Transfer, Way
from prompts_agent.compile.schedule.transfers import Transfers
from prompts_agent.compile.schedule.walk import Walk
from prompts_agent.estimate.calibration import Constants
from prompts_agent.hardware.chip import Chip
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Workload

__all__ = ["schedule_of", "timeline_of"]

_NAMES = 4


def timeline_of(
    scheduled: Scheduled, chip: Chip, transfers: Transfers, constants: Constants, *, cycles: bool
) -> Timeline:
    """One step on the clock: by the compiler's cycles where `cycles` and they are there."""
    rates = Rates.of(chip, constants)
    costs = OpCosts(scheduled, rates, use_cycles=cycles)
    return Walk(scheduled, costs, rates, transfers).step()


def schedule_of(
    data: bytes,
    chip: Chip,
    transfers: Transfers,
    constants: Constants,
    *,
    generated: bool,
    meant: tuple[Layout, Workload] | None = None,
) -> Schedule:
    """Reads a serialized HloProto of a scheduled program. Raises `DamagedTraceError`.

    With the layout that was `meant`, what is not as it meant is among the answers.
    """
    scheduled = read_scheduled(data)
    rooflined = timeline_of(scheduled, chip, transfers, constants, cycles=False)
    counted = None
    if scheduled.counted and Rates.of(chip, constants).clock_hz:
        counted = timeline_of(scheduled, chip, transfers, constants, cycles=True)
    shown = counted or rooflined
    costs = OpCosts(scheduled, Rates.of(chip, constants))
    exposed = {way: sum(_exposed(shown, way)) for way in Way}
    found = Schedule(
        clock="the compiler's cycle counts" if counted else "a roofline over its ops",
        step_time_s=shown.duration_s,
        by_cycles_s=counted.duration_s if counted else None,
        by_roofline_s=rooflined.duration_s,
        compute_s=shown.duration_s - sum(exposed.values()),
        exposed_collectives_s=exposed[Way.LINKS],
        exposed_host_s=exposed[Way.HOST],
        exposed_memory_s=exposed[Way.MEMORY],
        matmul_flops=sum(_flops(shown, costs)),
        collectives=_collectives(shown, scheduled, transfers),
        loops=tuple(_loops(shown)),
        generated=generated,
        notes=_notes(scheduled),
    )
    if meant is None:
        return found
    told = surprises(scheduled, shown, found, *meant)
    whole = meant[0].mesh.size(Axis.PIPELINE) == 1
    known = clock_ratio(chip.name) if whole and meant[1].phase.is_training else None
    expected_s = known.ratio * rooflined.duration_s if known else None
    return found.model_copy(update={"surprises": told, "expected_s": expected_s})


def _exposed(step: Timeline, way: Way) -> Iterator[float]:
    for timeline, times in step.walk():
        yield times * sum(t.exposed_s for t in timeline.transfers if t.way is way)


def _flops(step: Timeline, costs: OpCosts) -> Iterator[float]:
    for timeline, times in step.walk():
        yield times * sum(
            costs.flops(span.instruction) for span in timeline.spans if span.body is None
        )


def _loops(step: Timeline) -> Iterator[Loop]:
    for timeline, times in step.walk():
        for span in timeline.spans:
            if span.instruction.opcode == "while":
                trips = span.instruction.trip_count
                yield Loop(name=span.instruction.name, trips=trips, seconds=times * span.duration_s)


@dataclass(slots=True)
class _Sum:
    size: int | None = None
    count: int = 0
    bytes: int = 0
    total_s: float = 0.0
    exposed_s: float = 0.0
    algorithms: dict[str, None] = field(default_factory=dict)
    names: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, transfer: Transfer, times: int, algorithm: str) -> None:
        self.count += times
        self.bytes += times * transfer.bytes
        self.total_s += times * (transfer.end_s - transfer.start_s)
        self.exposed_s += times * transfer.exposed_s
        groups = transfer.collective.groups if transfer.collective else None
        if groups is not None and groups.size is not None:
            self.size = max(self.size or 0, groups.size)
        if algorithm:
            self.algorithms[algorithm] = None
        self.names[transfer.instruction.name] += times * (transfer.end_s - transfer.start_s)


def _collectives(
    step: Timeline, scheduled: Scheduled, transfers: Transfers
) -> tuple[CompiledCollective, ...]:
    sums: dict[tuple[str, str | None], _Sum] = defaultdict(_Sum)
    for timeline, times in step.walk():
        for transfer in timeline.transfers:
            collective = transfer.collective
            if collective is None:
                continue
            name = collective.instruction.name
            algorithm = scheduled.algorithm.get(name, "")
            key = (collective.kind, transfers.axis_of(collective))
            sums[key].add(transfer, times, algorithm)
    found = [
        CompiledCollective(
            kind=kind,
            axis=axis,
            group_size=one.size,
            count=one.count,
            bytes=one.bytes,
            total_s=one.total_s,
            exposed_s=one.exposed_s,
            algorithm=", ".join(one.algorithms),
            ops=tuple(sorted(one.names, key=lambda n: (-one.names[n], n))[:_NAMES]),
        )
        for (kind, axis), one in sums.items()
    ]
    return tuple(sorted(found, key=lambda c: (-c.exposed_s, -c.bytes, c.kind, c.axis or "")))


def _notes(scheduled: Scheduled) -> tuple[str, ...]:
    if not scheduled.unknown_loops:
        return ()
    names = ", ".join(scheduled.unknown_loops[:_NAMES])
    return (f"How often {names} runs is not in the program; once is assumed.",)
