"""Compiles within the trace, and programs that were compiled more than once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from prompts_agent.trace.capture import Capture
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.measure.intervals import union
from prompts_agent.units import seconds_from_ps

__all__ = ["Compiles", "find_compiles"]

_SIGNIFICANT_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Compiles:
    """`recompilations` are compiles of a name beyond its first; None where nothing tells."""

    recompilations: int | None
    recompile_s: float | None
    programs: tuple[str, ...]
    """Names that were compiled more than once."""
    compile_s: float
    """Of all compiles within the trace, nested events counted once."""


def find_compiles(
    capture: Capture,
    program_ps: Mapping[tuple[str, int | None], int],
    main: str | None,
) -> Compiles:
    """Two programs of one name and different ids are a recompile, if a compile is in the trace.

    Without one, both were compiled before: that costs this job nothing.

    Only of programs that matter: the main one, and those with at least 1% of the device's time;
    a job has dozens of small ones (`jit_convert_element_type`) for one shape each.
    """
    ids = _ids_by_name(capture.programs, program_ps)
    total = sum(program_ps.values())
    time_of: dict[str, int] = defaultdict(int)
    for (name, _), ps in program_ps.items():
        time_of[name] += ps
    again = sorted(
        name
        for name, found in ids.items()
        if len(found) > 1
        and (name == main or (total and time_of[name] >= _SIGNIFICANT_SHARE * total))
    )
    compiles, compile_s = _compiles_seen(capture)
    return Compiles(
        recompilations=min(sum(len(ids[name]) - 1 for name in again), compiles) if ids else None,
        recompile_s=compile_s if again and compile_s else None,
        programs=tuple(again),
        compile_s=compile_s,
    )


def _ids_by_name(
    programs: Mapping[int, HloProgram], ran: Iterable[tuple[str, int | None]]
) -> dict[str, set[int]]:
    ids: dict[str, set[int]] = defaultdict(set)
    for program in programs.values():
        ids[program.name].add(program.program_id)
    for name, program_id in ran:
        if program_id is not None:
            ids[name].add(program_id)
    return ids


def _compiles_seen(capture: Capture) -> tuple[int, float]:
    """How many compiles lie in the trace, and their seconds; nested events are one."""
    events = [event for event in capture.host_events if event.kind == "compile"]
    start = np.array([event.start_ps for event in events], np.int64)
    duration = np.array([event.duration_ps for event in events], np.int64)
    whole = union(start, start + duration)
    return int(whole.start.shape[0]), seconds_from_ps(whole.length)
