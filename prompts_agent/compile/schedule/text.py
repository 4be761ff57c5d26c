"""Text: a schedule as lines for a person."""

from __future__ import annotations

from prompts_agent.compile.schedule.records import CompiledCollective, Loop, Schedule
from prompts_agent.units import format_bytes, format_seconds

__all__ = ["schedule_lines"]

_ROWS = 8
_INDENT = "  "


def schedule_lines(schedule: Schedule) -> list[str]:
    """The step's time and what it is made of, its loops, and its collectives."""
    return [
        *_times(schedule),
        *_loops(schedule.loops),
        *_collectives(schedule.collectives),
        *(f"{_INDENT}Note: {note}" for note in schedule.notes),
    ]


def _times(schedule: Schedule) -> list[str]:
    step = [f"{_INDENT}A step takes {format_seconds(schedule.step_time_s)} by {schedule.clock}"]
    if schedule.by_cycles_s is not None:
        step.append(
            f"{_INDENT}({format_seconds(schedule.by_roofline_s)} by a roofline over its ops)"
        )
    if schedule.expected_s is not None:
        ratio = schedule.expected_s / schedule.by_roofline_s
        step.append(
            f"{_INDENT}(public runs on this chip took {ratio:.2f} times the roofline's: expect "
            f"{format_seconds(schedule.expected_s)})"
        )
    parts = {
        "ops": schedule.compute_s,
        "exposed collectives": schedule.exposed_collectives_s,
        "exposed host transfers": schedule.exposed_host_s,
        "waits for on-chip memory": schedule.exposed_memory_s,
    }
    shown = [
        f"{name} {format_seconds(value)} ({value / schedule.step_time_s:.0%})"
        for name, value in parts.items()
        if schedule.step_time_s and value >= 0.001 * schedule.step_time_s
    ]
    return [*step, *(f"{_INDENT}- {part}" for part in shown)]


def _loops(loops: tuple[Loop, ...]) -> list[str]:
    if not loops:
        return []
    said = [
        f"{loop.name} {loop.trips or '?'} times, {format_seconds(loop.seconds)}" for loop in loops
    ]
    return [f"{_INDENT}Loops: {'; '.join(said)}."]


def _collectives(uses: tuple[CompiledCollective, ...]) -> list[str]:
    if not uses:
        return [f"{_INDENT}No collectives."]
    rows = [("collective", "axis", "count", "bytes", "busy", "exposed"), *map(_row, uses[:_ROWS])]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [""]
    for row in rows:
        left = [f"{row[k]:<{widths[k]}}" for k in range(2)]
        right = [f"{row[k]:>{widths[k]}}" for k in range(2, len(row))]
        lines.append(f"{_INDENT}{'  '.join([*left, *right])}")
    if len(uses) > _ROWS:
        lines.append(f"{_INDENT}and {len(uses) - _ROWS} more kinds, each exposed less.")
    lines += [
        f"{_INDENT}{use.kind} over {use.axis or '?'}: {use.algorithm}"
        for use in uses[:_ROWS]
        if use.algorithm
    ]
    return lines


def _row(use: CompiledCollective) -> tuple[str, ...]:
    return (
        use.kind,
        use.axis or "?",
        str(use.count),
        format_bytes(use.bytes),
        format_seconds(use.total_s),
        format_seconds(use.exposed_s),
    )
