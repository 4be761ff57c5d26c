"""measure: a Capture to a Profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prompts_agent.errors import NotDiagnosableError
from prompts_agent.trace.capture import Capture
from prompts_agent.trace.hlo.mesh import Mesh, find_mesh, infer_mesh
from prompts_agent.trace.hlo.program import HloProgram
from prompts_agent.trace.measure.chips import chip_of, peak_flops
from prompts_agent.trace.measure.collectives import CollectiveSums, uses
from prompts_agent.trace.measure.compiles import Compiles, find_compiles
from prompts_agent.trace.measure.device import DeviceMeasure, device_name, measure_device
from prompts_agent.trace.measure.facts import Extras, facts_of
from prompts_agent.trace.measure.memory import hbm_peak, planned
from prompts_agent.trace.measure.missing import missing_of
from prompts_agent.trace.measure.ops import flops_per_step, top_ops
from prompts_agent.trace.measure.stragglers import host_steps
from prompts_agent.trace.measure.structure import (
    axis_finder,
    largest_program,
    mesh_axes,
    parameters,
    program_flops,
    static_sums,
)
from prompts_agent.trace.profile import Breakdown, Profile, ProgramUse, StepTimes
from prompts_agent.units import seconds_from_ps

if TYPE_CHECKING:
    from prompts_agent.hardware.chip import Chip

__all__ = ["measure"]

ProgramKey = tuple[str, int | None]


def measure(capture: Capture) -> Profile:
    """Measures a job, one device at a time.

    The breakdown, ops and collectives are those of the slowest device. Raises
    `NotDiagnosableError` where there are neither device events nor programs.
    """
    measures = [measure_device(d, capture.events(d)) for d in capture.active_devices()]
    measures = _working([m for m in measures if m.table])
    main = _slowest(measures)
    if main is None and not capture.programs:
        raise NotDiagnosableError(
            f"{capture.file.format} trace of {len(capture.devices)} devices",
            rule="no device shows an event, and no program is there to read",
            cure="Capture two to five steps while the devices work.",
        )
    program = _main_program(capture, main)
    sums, steps = _collective_sums(main, program)
    mesh = _mesh(program, sums, capture)
    chip = chip_of(main.device) if main else None
    program_ps = _program_times(measures)
    compiles = find_compiles(capture, program_ps, program.name if program else _name(main))
    return _Parts(capture, measures, main, program, sums, steps, mesh, chip, compiles).profile()


def _working(measures: list[DeviceMeasure]) -> list[DeviceMeasure]:
    """Without devices that ran no program while others did: jax makes arrays on a host's first
    GPU, whichever runs the program. Where the trace knows of no program, all of them.
    """
    return [m for m in measures if m.program_runs] or measures


def _name(main: DeviceMeasure | None) -> str | None:
    return main.steps.program if main and main.steps else None


def _slowest(measures: Sequence[DeviceMeasure]) -> DeviceMeasure | None:
    """Of the devices that run the job's main program, the one with the longest step."""
    times = _program_times(measures)
    with_steps = [m for m in measures if m.steps is not None]
    if not with_steps:
        return max(measures, key=lambda m: m.busy_ps, default=None)

    def job_time(m: DeviceMeasure) -> int:
        return times.get((m.steps.program, m.steps.program_id), 0) if m.steps else 0

    most = max(map(job_time, with_steps))
    running = [m for m in with_steps if job_time(m) == most]
    return max(running, key=lambda m: (m.steps.step_ps if m.steps else 0, device_name(m.device)))


def _program_times(measures: Sequence[DeviceMeasure]) -> dict[tuple[str, int | None], int]:
    times: dict[tuple[str, int | None], int] = defaultdict(int)
    for m in measures:
        for key, ps in m.program_ps.items():
            times[key] += ps
    return dict(times)


def _main_program(capture: Capture, main: DeviceMeasure | None) -> HloProgram | None:
    if main is None:
        return largest_program(list(capture.programs.values()))
    if main.steps is None or main.steps.program_id is None:
        return None
    return capture.programs.get(main.steps.program_id)


def _collective_sums(
    main: DeviceMeasure | None, program: HloProgram | None
) -> tuple[list[CollectiveSums], float]:
    if main is not None:
        return main.collectives, main.window_steps
    return (static_sums(program) if program else []), 1.0


def _mesh(
    program: HloProgram | None, sums: Sequence[CollectiveSums], capture: Capture
) -> Mesh | None:
    """The main program's mesh; else that of the others on as many devices, together.

    Without any HLO, the one that the groups of the main device's collectives imply.
    """
    if program is not None and (mesh := program.mesh) is not None:
        return mesh
    devices = program.device_count if program is not None else capture.devices_in_job
    peers = [p for p in capture.programs.values() if devices and p.device_count == devices]
    if peers:
        groups = [g for p in peers for g in p.groups]
        return find_mesh(groups, [s for p in peers for s in p.shardings], devices)
    from_events = [found.op.groups for found in sums if found.op.groups]
    return infer_mesh(from_events, [], devices) if from_events else None


@dataclass
class _Parts:
    """The pieces of a profile on their way into one record."""

    capture: Capture
    measures: Sequence[DeviceMeasure]
    main: DeviceMeasure | None
    program: HloProgram | None
    sums: list[CollectiveSums]
    steps: float
    mesh: Mesh | None
    chip: Chip | None
    compiles: Compiles
    extras: Extras = field(default_factory=Extras)

    @property
    def structure_only(self) -> bool:
        return self.main is None or self.main.device.platform == "cpu"

    def profile(self) -> Profile:
        axes, mesh_source = mesh_axes(self.mesh)
        peak = hbm_peak(self.capture, self.program)
        flops = self._flops()
        profile = Profile(
            device_kind=self._kind(),
            device_label=self.main.device.label if self.main else "none: a program without a run",
            structure_only=self.structure_only,
            devices_in_trace=len(self.measures),
            devices_in_job=self.capture.devices_in_job,
            hosts=len({device.host for device in self.capture.devices}) or 1,
            step=self._step(),
            breakdown=self.main.breakdown if self.main else Breakdown(),
            mesh=axes,
            mesh_source=mesh_source,
            collectives=uses(
                self.sums,
                self.steps,
                axis_finder(self.mesh, self.capture.programs),
                has_times=not self.structure_only,
            ),
            top_ops=top_ops(self.main, self.capture.programs, self.chip) if self.main else (),
            programs=self._programs(),
            parameters=parameters(self.program),
            hbm_peak_bytes=peak[0] if peak else None,
            hbm_capacity_bytes=self._capacity(),
            recompilations=self.compiles.recompilations,
            recompile_s=self.compiles.recompile_s,
            stragglers=() if self.structure_only else host_steps(self.measures),
            flops_per_step=flops,
        )
        self._note_sources(peak[1] if peak else "", flops)
        found = facts_of(profile, self.measures, self.main, self.extras)
        lacks = missing_of(profile, self.capture, self.main)
        return profile.model_copy(update={"facts": found, "missing": lacks})

    def _kind(self) -> str | None:
        if self.main is not None and self.main.device.platform == "cpu":
            return "cpu"
        return self.chip.name if self.chip else None

    def _step(self) -> StepTimes | None:
        steps = self.main.steps if self.main else None
        if steps is None or self.main is None:
            return None
        period = steps.period_ps
        return StepTimes(
            median_s=seconds_from_ps(steps.median_ps),
            min_s=seconds_from_ps(int(steps.duration.min())),
            max_s=seconds_from_ps(int(steps.duration.max())),
            count=len(steps),
            period_s=None if period is None else seconds_from_ps(period),
            program=steps.program,
            derived_from=steps.derived_from(device_name(self.main.device)),
        )

    def _programs(self) -> tuple[ProgramUse, ...]:
        runs: Mapping[ProgramKey, int] = self.main.program_runs if self.main else {}
        times: Mapping[ProgramKey, int] = self.main.program_ps if self.main else {}
        known: dict[ProgramKey, HloProgram] = {
            (p.name, p.program_id): p for p in self.capture.programs.values()
        }
        found = []
        for key in {**dict.fromkeys(runs), **dict.fromkeys(known)}:
            program = known.get(key)
            found.append(
                ProgramUse(
                    name=key[0],
                    program_id="unknown" if key[1] is None else str(key[1]),
                    runs=runs.get(key, 0),
                    total_s=seconds_from_ps(times[key]) if key in times else None,
                    devices=program.device_count if program else None,
                    has_hlo=program is not None,
                )
            )
        return tuple(sorted(found, key=lambda p: (-(p.total_s or 0), p.name, p.program_id)))

    def _flops(self) -> float | None:
        if self.main is not None and not self.structure_only:
            found = flops_per_step(self.main)
            if found is not None:
                self.extras.sources["flops_per_step"] = found[1]
                return found[0]
            return None
        if self.program is None:
            return None
        self.extras.sources["flops_per_step"] = f"matmul sizes in the HLO of {self.program.name}"
        return program_flops(self.program)

    def _capacity(self) -> int | None:
        if self.main is None or self.main.device.platform == "cpu":
            return None
        seen = self.main.device.memory_bytes
        self.extras.sources["hbm.capacity"] = (
            "device plane or allocator" if seen else "hardware table"
        )
        return seen or (self.chip.hbm_bytes if self.chip else None)

    def _note_sources(self, peak_source: str, flops: float | None) -> None:
        compiles = self.compiles
        self.extras.sources["hbm.peak"] = peak_source
        self.extras.sources["recompilations"] = (
            f"programs of one name and different ids: {', '.join(compiles.programs)}"
            if compiles.programs
            else "program ids of the trace: no name has two"
        )
        self.extras.sources["recompile_time"] = (
            "compile events on the host, nested ones counted once"
        )
        self.extras.sources["compile_time"] = self.extras.sources["recompile_time"]
        self.extras.compile_s = compiles.compile_s or None
        if self.program is not None and (size := planned(self.program)) is not None:
            self.extras.planned_bytes = size
            self.extras.sources["hbm.planned"] = f"buffer assignment of {self.program.name}"
        if flops and self.main and self.main.steps and not self.structure_only:
            peak = peak_flops(self.chip, self.main.device, "bf16")
            if peak:
                step_s = seconds_from_ps(self.main.steps.step_ps)
                self.extras.mfu = flops / step_s / peak
                self.extras.sources["mfu"] = (
                    f"FLOPs per step ÷ step period ÷ {peak:.4g} FLOP/s (bf16)"
                )
