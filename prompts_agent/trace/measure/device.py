"""Everything that is measured on one device, small enough to keep for all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import Device, DeviceEvents, Events, Op
from prompts_agent.trace.measure.breakdown import Waits, divide_time
from prompts_agent.trace.measure.classify import Activity, activities
from prompts_agent.trace.measure.collectives import CollectiveSums, sum_collectives
from prompts_agent.trace.measure.selftime import self_times
from prompts_agent.trace.measure.steps import DeviceSteps, find_steps
from prompts_agent.trace.profile import Breakdown

__all__ = ["DeviceMeasure", "OpSums", "device_name", "measure_device"]


def device_name(device: Device) -> str:
    """`host0/TPU:3`."""
    return f"{device.host}/{device.platform.upper()}:{device.index}"


@dataclass(frozen=True, slots=True)
class OpSums:
    """Per op of the table, within the steps: events, and self time in picoseconds."""

    count: NDArray[np.int64]
    self_ps: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMeasure:
    """One device. `window_steps` is how many steps the sums span."""

    device: Device
    steps: DeviceSteps | None
    window_steps: float
    table: list[Op]
    ops: OpSums
    breakdown: Breakdown
    waits: Waits
    collectives: list[CollectiveSums]
    program_runs: Counter[tuple[str, int | None]]
    program_ps: dict[tuple[str, int | None], int]
    busy_ps: int
    """Time with any event at all, over the whole capture."""


def measure_device(device: Device, events: DeviceEvents) -> DeviceMeasure:
    """Measures one device. Events are only read, and not kept."""
    has_times = device.platform != "cpu"
    steps = find_steps(events, by_time=has_times)
    kinds = activities(events.table, device.platform)
    window = _window(events.ops, steps)
    own = self_times(window) if device.platform == "tpu" else window.duration_ps
    size = len(events.table)
    sums = OpSums(
        np.bincount(window.op, minlength=size),
        np.bincount(window.op, weights=own, minlength=size).astype(np.float64),
    )
    window_steps = float(len(steps)) if steps else 1.0
    breakdown, waits = divide_time(events.ops, kinds, steps) if has_times else (Breakdown(), None)
    runs: Counter[tuple[str, int | None]] = Counter()
    times: dict[tuple[str, int | None], int] = defaultdict(int)
    for run in events.modules:
        runs[run.name, run.program_id] += 1
        times[run.name, run.program_id] += run.duration_ps
    return DeviceMeasure(
        device=device,
        steps=steps,
        window_steps=window_steps,
        table=events.table,
        ops=sums,
        breakdown=breakdown,
        waits=waits or Waits(),
        collectives=sum_collectives(events, window, kinds, device.platform),
        program_runs=runs,
        program_ps=dict(times),
        busy_ps=_busy(events.ops, kinds),
    )


def _window(ops: Events, steps: DeviceSteps | None) -> Events:
    """Events that begin within the kept steps; all of them where there are no steps."""
    if steps is None:
        return ops
    low, high = np.searchsorted(ops.start_ps, [steps.start[0], steps.until[-1]])
    return Events(ops.op[low:high], ops.start_ps[low:high], ops.duration_ps[low:high])


def _busy(ops: Events, kinds: NDArray[np.int8]) -> int:
    working = kinds[ops.op] < Activity.CONTAINER
    return int(ops.duration_ps[working].sum())
