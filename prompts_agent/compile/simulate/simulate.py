"""Simulate: from a workload and a layout to the trace that its compiled step would leave."""

from __future__ import annotations

import gzip
from pathlib import Path

from prompts_agent.compile import cache
from prompts_agent.compile.final_program import load_program
from prompts_agent.compile.fit import fit
from prompts_agent.compile.outcome import CompiledFit, Outcome
from prompts_agent.compile.request import Until
from prompts_agent.compile.schedule.rates import OpCosts, Rates
from prompts_agent.compile.schedule.scheduled import read_scheduled
from prompts_agent.compile.schedule.summary import timeline_of
from prompts_agent.compile.schedule.transfers import LayoutTransfers, mesh_of
from prompts_agent.compile.schedule_reading import constants_for
from prompts_agent.compile.simulate.events import device_lines
from prompts_agent.compile.simulate.program import traced_program
from prompts_agent.compile.simulate.xspace import trace_bytes
from prompts_agent.errors import CompileError, HardwareError
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.layout import Layout
from prompts_agent.units import format_seconds
from prompts_agent.workload.workload import Workload

__all__ = ["packed", "simulate", "simulated_text", "simulated_trace"]

_PROGRAM_ID = 1


def simulate(
    layout: Layout,
    workload: Workload,
    *,
    steps: int = 3,
    until: Until = Until.SCHEDULE,
    timeout_s: float = 600.0,
) -> tuple[bytes, CompiledFit]:
    """A serialized XSpace of `steps` steps on one device, and the compiler's answer.

    Raises `CompileError` where there is no schedule (the layout does not fit or does not compile,
    no compiler), `HardwareError` for chips whose traces are not written.
    """
    _require_tpu(workload)
    answer = fit(layout, workload, timeout_s=timeout_s, until=until)
    data = load_program(cache.program_path(answer.key)) if answer.key else None
    if answer.schedule is not None and data is None:
        # The answer was kept, its program was not.
        answer = fit(layout, workload, timeout_s=timeout_s, until=until, use_cache=False)
        data = load_program(cache.program_path(answer.key)) if answer.key else None
    if answer.schedule is None or data is None:
        raise CompileError(
            f"layout {layout} on {workload.topology}: {answer.outcome.value}",
            rule=answer.reason or "the compiler left no schedule",
            cure=_cure(answer),
        )
    return simulated_trace(data, layout, workload, by=str(answer.toolchain), steps=steps), answer


def simulated_trace(
    data: bytes, layout: Layout, workload: Workload, *, by: str, steps: int = 3
) -> bytes:
    """The trace of a scheduled program, a serialized HloProto, that was cut by `layout`."""
    _require_tpu(workload)
    chip, constants = find_chip(workload.topology.chip), constants_for(workload)
    mesh = mesh_of(layout)
    scheduled = read_scheduled(data)
    transfers = LayoutTransfers(layout, workload.topology, constants)
    step = timeline_of(scheduled, chip, transfers, constants, cycles=scheduled.counted)
    hlo = traced_program(data, mesh, _PROGRAM_ID)
    program = scheduled.with_id(_PROGRAM_ID)
    said = (
        f"Simulated by prompts: no device ran this. The schedule is {by}'s for {layout} on "
        f"{workload.topology}, put on a clock; every step is alike, and one device stands for all."
    )
    return trace_bytes(
        device_lines(step, steps),
        program,
        OpCosts(scheduled, Rates.of(chip, constants)),
        chip=chip,
        hlo=hlo,
        said=said,
    )


def packed(trace: bytes, path: Path) -> bytes:
    """As the name of the file wants it: compressed for `.gz`."""
    return gzip.compress(trace, mtime=0) if path.suffix == ".gz" else trace


def simulated_text(layout: Layout, answer: CompiledFit, path: Path, steps: int) -> str:
    """What was written, and how to look at it."""
    schedule = answer.schedule
    step = format_seconds(schedule.step_time_s) if schedule else "unknown time"
    return (
        f"Wrote {path}: {steps} steps of {step} of {layout} on {answer.topology}, simulated from "
        f"the schedule of {answer.toolchain}.\nRead it with `prompts diagnose {path}`, or open it "
        "in XProf."
    )


def _require_tpu(workload: Workload) -> None:
    chip = find_chip(workload.topology.chip)
    if chip.platform != "tpu":
        raise HardwareError(
            f"chip {chip.name}",
            rule="traces are simulated for TPUs: a GPU's shows kernels and streams, which are not "
            "in its HLO",
            cure="Ask `prompts verify --rung full` for the same numbers.",
        )


def _cure(answer: CompiledFit) -> str:
    if answer.outcome is Outcome.DOES_NOT_FIT:
        return " ".join(answer.advice[:1]) or "Take a layout that fits: prompts verify says which."
    return "See `prompts verify` for what the compiler says of it."
