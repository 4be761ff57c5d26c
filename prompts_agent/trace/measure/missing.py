"""What a trace lacks, and what it would have told: a sentence each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from prompts_agent.trace.capture import Capture
from prompts_agent.trace.measure.classify import Activity, activities
from prompts_agent.trace.measure.device import DeviceMeasure
from prompts_agent.trace.profile import Profile

__all__ = ["missing_of"]

_UNNAMED_SHARE = 0.2


def missing_of(profile: Profile, capture: Capture, main: DeviceMeasure | None) -> tuple[str, ...]:
    """The reader's own sentences first, then what the measurements could not find."""
    found = [*capture.missing, *_structure(profile), *_devices(profile, capture)]
    if main is not None and not profile.structure_only:
        found += [*_times(profile), *_kernels(capture, main)]
    found += _memory(profile)
    return tuple(dict.fromkeys(found))


def _structure(profile: Profile) -> Iterator[str]:
    if profile.structure_only and profile.device_kind == "cpu":
        yield (
            "virtual CPU devices: mesh, shardings, collectives and recompiles are real, but no "
            "time of a CPU says anything about an accelerator"
        )


def _devices(profile: Profile, capture: Capture) -> Iterator[str]:
    job = profile.devices_in_job
    if job and 0 < profile.devices_in_trace < job:
        yield (
            f"{job - profile.devices_in_trace} of the job's {job} devices are not in the trace: "
            "a straggler among them would not be seen"
        )
    idle = len(capture.devices) - profile.devices_in_trace
    if idle:
        yield f"{idle} of {len(capture.devices)} devices of the hosts ran nothing"
    if profile.devices_in_trace and profile.device_kind is None:
        yield (
            f"the chip {profile.device_label!r} is not in the hardware table: no ceilings, so no "
            "roofline and no utilisation"
        )


def _times(profile: Profile) -> Iterator[str]:
    if profile.step is None:
        yield (
            "steps: no program runs and no marked steps on the device, so times are of the whole "
            "capture and not of a step"
        )
    elif profile.step.period_s is None:
        yield "the idle time between steps: the trace holds one whole step"
    if profile.flops_per_step is None:
        yield (
            "FLOPs per step: the trace counts none, or not those of its custom calls, so "
            "utilisation is unknown"
        )
    if any(use.axis is None for use in profile.collectives):
        yield "the mesh axis of some collectives: neither names nor replica groups tell it"


def _kernels(capture: Capture, main: DeviceMeasure) -> Iterator[str]:
    if main.device.platform != "gpu" or not capture.programs:
        return
    kinds = activities(main.table, "gpu")
    work = main.ops.self_ps * (kinds == Activity.COMPUTE)
    unnamed = np.array([op.program_id is None for op in main.table], np.bool_)
    if work.sum() and work[unnamed].sum() / work.sum() > _UNNAMED_SHARE:
        yield (
            "which program some kernels belong to: command buffers hide it; capture once with "
            "XLA_FLAGS=--xla_gpu_enable_command_buffer="
        )


def _memory(profile: Profile) -> Iterator[str]:
    if profile.hbm_peak_bytes is None:
        yield "peak memory: neither allocator events nor a buffer assignment"
