"""Noise: which change of a step is more than steps differ among themselves."""

from __future__ import annotations

import math

from prompts_agent.agents.comparison.comparison import Noise
from prompts_agent.agents.comparison.side import Side
from prompts_agent.trace.profile import Profile
from prompts_agent.units import format_seconds

__all__ = ["SAME_LAYOUT", "noise_of", "spread_of"]

SAME_LAYOUT = 0.01
"""Of a step: two runs of one layout differ by this much even where the steps of each do not; the
planner counts layouts this close as tied."""


def spread_of(profile: Profile) -> float | None:
    """Standard deviation of one step in seconds; None for fewer than three steps."""
    fact = profile.fact("step_time.spread")
    return float(fact.value) if fact is not None else None


def noise_of(before: Side, after: Side) -> Noise:
    """One standard deviation of the difference of two steps, at least 1% of the step before.

    Medians of many steps are surer than one step, but steps of one run share what differs from run
    to run (placement, neighbours on the network), so the floor does not shrink with their number.
    """
    spreads = [spread_of(side.profile) for side in (before, after)]
    known = [value for value in spreads if value is not None]
    if len(known) < len(spreads):
        return Noise(
            floor_s=None,
            source="unknown: it takes three steps of both runs to see how far steps differ",
        )
    of_steps, least = math.hypot(*known), SAME_LAYOUT * before.step_s
    if of_steps >= least:
        parts = " and ".join(format_seconds(value) for value in known)
        text = f"spread of the steps: standard deviations {parts}"
    else:
        share = f"{100 * SAME_LAYOUT:.0f}%"
        text = f"{share} of a step, which runs of one layout differ by; the steps of each spread"
        text += " by less"
    return Noise(floor_s=max(of_steps, least), source=text)
