"""Where a step goes: the parts of a profile's breakdown, with what nobody could attribute."""

from __future__ import annotations

from typing import NamedTuple

from prompts_agent.trace.profile import Profile

__all__ = ["UNATTRIBUTED", "Part", "StepParts", "cells", "no_times", "step_parts"]

UNATTRIBUTED = "not attributed"
NEGLIGIBLE = 0.005
"""Of the step: parts are medians of their own, and need not add up to the last half percent."""

_LABELS = {
    "compute": "compute_s",
    "exposed collective": "exposed_collective_s",
    "host transfer": "host_transfer_s",
    "input": "input_s",
    "idle": "idle_s",
}


class Part(NamedTuple):
    """`seconds` None: the trace cannot tell."""

    label: str
    seconds: float | None


class StepParts(NamedTuple):
    """`total_s` None: no part is known."""

    parts: tuple[Part, ...]
    total_s: float | None


def step_parts(profile: Profile) -> StepParts:
    """The five parts in order, then the rest of the period that they leave."""
    parts = [Part(label, getattr(profile.breakdown, name)) for label, name in _LABELS.items()]
    known = sum(part.seconds or 0.0 for part in parts)
    if all(part.seconds is None for part in parts) or known <= 0:
        return StepParts(tuple(parts), None)
    step = profile.step
    period = (step.period_s or step.median_s) if step is not None else known
    rest = period - known
    if rest > NEGLIGIBLE * period:
        parts.append(Part(UNATTRIBUTED, rest))
    return StepParts(tuple(parts), max(period, known))


def no_times(profile: Profile, parts: StepParts) -> str | None:
    """Why the times of a step are not shown; None where they are."""
    if profile.structure_only and profile.devices_in_trace == 0:
        return (
            "This is a compiled program and no run of it: its structure is real, times it has none."
        )
    if profile.structure_only:
        return (
            "The trace ran on CPU devices: its mesh, shapes and collectives are real, its times "
            "say nothing about other hardware."
        )
    return "Unknown: the trace holds no times of a step." if parts.total_s is None else None


def cells(seconds: list[float], width: int) -> list[int]:
    """Cells of a bar of `width`, in proportion; everything above zero gets at least one.

    Rounded by largest remainder, so that they add up: [2, 1, 1] over 10 → [5, 3, 2].
    """
    total = sum(seconds)
    if total <= 0 or width <= 0:
        return [0] * len(seconds)
    exact = [width * value / total for value in seconds]
    found = [
        max(1, int(part)) if value > 0 else 0 for part, value in zip(exact, seconds, strict=True)
    ]
    by_remainder = sorted(range(len(exact)), key=lambda i: (int(exact[i]) - exact[i], i))
    for i in by_remainder:
        if sum(found) >= width:
            break
        found[i] += 1 if seconds[i] > 0 else 0
    # Cells that smallest parts were given are taken from the largest.
    while sum(found) > width:
        largest = max(range(len(found)), key=lambda i: (found[i], -i))
        if found[largest] <= 1:
            break
        found[largest] -= 1
    return found
