"""Events: a timeline with its loops unrolled, in picoseconds, as a device's lines have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from prompts_agent.compile.schedule.timeline import Span, Timeline, Transfer, Way
from prompts_agent.trace.hlo.program import Instruction

__all__ = ["DeviceLines", "Event", "device_lines"]

_PS = 1e12


@dataclass(frozen=True, slots=True)
class Event:
    """One run of one instruction."""

    name: str
    start_ps: int
    duration_ps: int


@dataclass(slots=True)
class DeviceLines:
    """What one device's plane shows: its op line, its asynchronous spans, and its steps."""

    ops: list[Event] = field(default_factory=list)
    windows: list[Event] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    used: dict[str, Instruction] = field(default_factory=dict)


def device_lines(step: Timeline, steps: int) -> DeviceLines:
    """`steps` runs of the program, one right after the other.

    What takes no time and moves nothing between devices or to the host is left out: most of a
    program's instructions are such, and most of a file would be.
    """
    lines = DeviceLines()
    for k in range(steps):
        start_s = k * step.duration_s
        _emit(lines, step, start_s)
        lines.steps.append(_span(start_s, step.duration_s))
    lines.ops.sort(key=lambda event: (event.start_ps, -event.duration_ps))
    lines.windows.sort(key=lambda event: event.start_ps)
    return lines


def _emit(lines: DeviceLines, timeline: Timeline, at_s: float) -> None:
    issued = {t.instruction.name: t for t in timeline.transfers if t.way is not Way.MEMORY}
    for span in _kept(timeline, issued):
        lines.used[span.instruction.name] = span.instruction
        start_ps, duration_ps = _span(at_s + span.start_s, span.duration_s)
        lines.ops.append(Event(span.instruction.name, start_ps, duration_ps))
        if span.body is not None and span.trips:
            for trip in range(span.trips):
                _emit(lines, span.body, at_s + span.start_s + trip * span.body.duration_s)
    for transfer in issued.values():
        if not transfer.synchronous:
            start_ps, duration_ps = _span(
                at_s + transfer.issued_s, transfer.end_s - transfer.issued_s
            )
            lines.windows.append(Event(transfer.instruction.name, start_ps, duration_ps))


def _kept(timeline: Timeline, issued: dict[str, Transfer]) -> Iterator[Span]:
    awaited = {transfer.awaited_by for transfer in issued.values()}
    for span in timeline.spans:
        name = span.instruction.name
        if span.duration_s > 0.0 or name in issued or name in awaited:
            yield span


def _span(start_s: float, duration_s: float) -> tuple[int, int]:
    """Start and duration; ends are rounded, not durations, so that neighbours still touch."""
    start_ps = round(start_s * _PS)
    return start_ps, max(0, round((start_s + duration_s) * _PS) - start_ps)
