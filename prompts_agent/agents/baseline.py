"""Today's layout: from the workload, else from the trace's mesh; and whose time was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from prompts_agent.agents.placeholders import scrub
from prompts_agent.agents.program import axes_of, program_shapes
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.legality import check
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.complete import Surroundings, complete_layout
from prompts_agent.workload.infer_mesh import infer_mesh
from prompts_agent.workload.program import ProgramShapes
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Measured, Phase, Workload

__all__ = ["Today", "calibrated", "same_hardware", "today_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """The layout that was traced, as far as it can be told for this workload."""

    layout: Layout | None = None
    degrees: dict[Axis, int] = field(default_factory=dict)
    """Of the mesh that ran, where `layout` is None: known, though no layout of these devices."""
    measured: bool = False
    """The trace's step time is this layout's on this workload's devices."""
    axes: dict[str, Axis] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()


def same_hardware(workload: Workload, profile: Profile) -> bool:
    """The trace was taken on the devices that the plan is for."""
    return (
        not profile.structure_only
        and profile.device_kind == workload.topology.chip
        and _devices(profile) == workload.topology.devices
    )


def today_of(workload: Workload, profile: Profile) -> Today:
    """Today's layout of the workload, checked against the trace's mesh."""
    shapes = program_shapes(profile)
    mesh = infer_mesh(shapes)
    degrees = mesh.degrees
    axes = axes_of(profile, shapes, degrees)
    told = _told(profile, shapes)
    measurable = same_hardware(workload, profile)
    caveats = [] if measurable else [_other_hardware(workload, profile)]
    if workload.baseline is not None:
        broken = _broken(workload.baseline, workload)
        if broken:
            caveats.append(f"Today's layout is not legal here ({broken[0]}): it is not compared.")
            used = workload.baseline.mesh.used()
            return Today(degrees=used, axes=axes, caveats=tuple(caveats))
        if degrees is not None and _larger_than_one(degrees) != workload.baseline.mesh.used():
            caveats.append(
                "The trace's mesh is not the workload's baseline, so its step time calibrates "
                "nothing."
            )
            measurable = False
        return Today(
            layout=workload.baseline,
            measured=measurable,
            axes=axes,
            assumptions=told,
            caveats=tuple(caveats),
        )
    layout, assumptions = _from_mesh(workload, degrees)
    whole = degrees is not None and math.prod(degrees.values()) == _devices(profile)
    known = _larger_than_one(degrees) if layout is None and whole and degrees is not None else {}
    if layout is None:
        caveats.append(_not_compared(workload, profile, known))
    return Today(
        layout=layout,
        degrees=known,
        measured=measurable and layout is not None,
        axes=axes,
        assumptions=(*told, *mesh.assumptions, *assumptions) if layout is not None else (),
        caveats=tuple(caveats),
    )


def _devices(profile: Profile) -> int:
    return profile.devices_in_job or profile.devices_in_trace


def _not_compared(workload: Workload, profile: Profile, degrees: dict[Axis, int]) -> str:
    if not degrees:
        return (
            "Today's layout is not known, so proposals are not compared with it: the trace's mesh "
            "is not one of this workload's devices, or its axes have other names."
        )
    named = " × ".join(f"{axis} {degrees[axis]}" for axis in Axis if axis in degrees)
    return (
        f"Changes are from the traced mesh, {named} on {_devices(profile)} devices, which is no "
        f"layout of {workload.topology}: no speed-up over it is predicted."
    )


def _told(profile: Profile, shapes: ProgramShapes) -> tuple[str, ...]:
    """A sentence for each axis whose meaning follows from what it cuts."""
    pairs = zip(profile.mesh, shapes.mesh, strict=True)
    return tuple(
        f"The program's axis {scrub(axis.name)} is taken as {meant.name}, because weights and "
        "batch are cut so."
        for axis, meant in pairs
        if axis.name != meant.name
    )


def _larger_than_one(degrees: dict[Axis, int]) -> dict[Axis, int]:
    return {axis: size for axis, size in degrees.items() if size > 1}


def _from_mesh(
    workload: Workload, degrees: dict[Axis, int] | None
) -> tuple[Layout | None, tuple[str, ...]]:
    if degrees is None:
        return None, ()
    around = Surroundings(
        topology=workload.topology,
        phase=workload.phase,
        global_batch=workload.global_batch,
        constraints=workload.constraints,
        precision=workload.precision,
    )
    layout, assumed = complete_layout(degrees, {}, around)
    if layout.devices != workload.topology.devices:
        return None, ()
    return (None, ()) if _broken(layout, workload) else (layout, assumed)


def _broken(layout: Layout, workload: Workload) -> list[str]:
    checks = check(layout, search_space(workload))
    return [item.text for item in checks if item.forbids and not item.ok]


def _other_hardware(workload: Workload, profile: Profile) -> str:
    traced = f"{_devices(profile)} × {profile.device_kind or 'an unknown device'}"
    return (
        f"The trace is of {traced}, the plan for {workload.topology}: what the trace measured "
        "does not calibrate the predictions."
    )


def calibrated(workload: Workload, today: Today, profile: Profile) -> Workload:
    """The workload with today's layout, and its measurement where the trace has one."""
    measured = _measured(workload, today, profile) or workload.baseline_measured
    return workload.model_copy(
        update={
            "baseline": today.layout,
            "baseline_measured": measured,
            "assumptions": (*workload.assumptions, *today.assumptions),
        }
    )


def _measured(workload: Workload, today: Today, profile: Profile) -> Measured | None:
    if today.layout is None or not today.measured or profile.step is None:
        return None
    step_s = profile.step.period_s or profile.step.median_s
    return Measured(
        layout=today.layout,
        step_time_s=step_s,
        ttft_s=step_s if workload.phase is Phase.PREFILL else None,
        tpot_s=step_s if workload.phase is Phase.DECODE else None,
        hbm_bytes=profile.hbm_peak_bytes or None,
        source=f"the trace: median of {profile.step.count} steps of {profile.step.program}",
    )
