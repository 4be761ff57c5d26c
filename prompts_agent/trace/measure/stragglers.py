"""Step time of every chip, or of every host where there are many chips."""

from __future__ import annotations

from collections.abc import Sequence

from prompts_agent.trace.measure.device import DeviceMeasure, device_name
from prompts_agent.trace.profile import HostStep
from prompts_agent.units import seconds_from_ps

__all__ = ["host_steps"]

_MAX_CHIPS = 64


def host_steps(measures: Sequence[DeviceMeasure]) -> tuple[HostStep, ...]:
    """Slowest first. A host is as slow as its slowest chip.

    A chip that waits for a straggler takes as long as the straggler does; what tells them apart is
    the exposed collective time, which the straggler has least of.
    """
    chips = [_step(device_name(m.device), m) for m in measures if m.steps is not None]
    if len(chips) > _MAX_CHIPS:
        hosts: dict[str, HostStep] = {}
        for m in measures:
            if m.steps is None:
                continue
            step = _step(m.device.host, m)
            known = hosts.setdefault(step.name, step)
            if step.step_time_s > known.step_time_s:
                hosts[step.name] = step
        chips = list(hosts.values())
    return tuple(sorted(chips, key=lambda step: (-step.step_time_s, step.name)))


def _step(name: str, found: DeviceMeasure) -> HostStep:
    median = found.steps.median_ps if found.steps else 0.0
    return HostStep(
        name=name,
        step_time_s=seconds_from_ps(median),
        exposed_collective_s=found.breakdown.exposed_collective_s,
    )
