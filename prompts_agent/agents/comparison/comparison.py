"""Comparison: what changed between two profiles of one job, as data. Renderers only lay it out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prompts_agent.agents.report import Change
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.record import Record
from prompts_agent.trace.profile import TraceFile

__all__ = ["Comparison", "FindingShift", "Likeness", "Noise", "Outcome", "Run", "Shift"]

Direction = Literal["faster", "slower", "within_noise", "unknown"]


class Likeness(Record):
    """One thing that has to be equal for the two runs to be of one job, as the traces tell it."""

    what: str
    before: str | None
    after: str | None
    same: bool | None
    """None: at least one of the traces does not tell."""


class Run(Record):
    """One of the two profiles."""

    trace: TraceFile | None = None
    mesh: str | None = None
    """In our axes where they are known, else in the trace's own names."""
    degrees: dict[Axis, int] | None = None
    """Of the mesh that ran, larger than one; None where the trace does not tell."""
    step_time_s: float
    steps: int
    spread_s: float | None = None
    """Standard deviation of one step; None for fewer than three steps."""
    hbm_peak_bytes: int | None = None


class Noise(Record):
    """The smallest change of a step, or of a part of it, that is told from noise."""

    floor_s: float | None
    """None: too few steps to tell."""
    source: str


class Shift(Record):
    """A part of the step before and after, in seconds; `change_s` below zero is a gain."""

    what: str
    before_s: float | None
    after_s: float | None
    change_s: float | None
    within_noise: bool | None
    """None: one side or the noise is unknown."""


class FindingShift(Shift):
    """A finding of either run. `what` holds no name of the trace but its axis."""

    kind: FindingKind
    axes: tuple[Axis, ...] = ()
    """What the collective runs over, in our axes; empty where unknown or no collective."""
    is_sharding: bool
    found: Literal["both", "before", "after"]
    """In which run the analyst found it. In the other it may still be there, below its
    threshold."""


class Outcome(Record):
    """How far the prediction of a proposal that was followed was off."""

    rank: int = Field(ge=1)
    layout: Layout
    predicted_gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    measured_gain: float | None = None
    gain_error: float | None = None
    """Measured ÷ predicted − 1: above zero, it went better than predicted."""
    predicted_step_time_s: float | None = None
    step_low_s: float | None = None
    step_high_s: float | None = None
    measured_step_time_s: float
    step_error: float | None = None
    """Measured ÷ predicted − 1: above zero, the step took longer than predicted."""
    inside: bool | None = None
    """The measured gain, or without one the step, lies in the predicted 90% interval."""
    not_scored: str | None = None
    """Why the prediction is not held against this run; None: it is."""


class Comparison(Record):
    """The answer of `prompts compare`."""

    tool_version: str
    before: Run
    after: Run
    likeness: tuple[Likeness, ...]
    alike: bool
    """Nothing that the traces tell differs, but for the layout."""
    job: str | None = None
    """Model, phase, batch and hardware in words, where they are known."""
    changes: tuple[Change, ...] = ()
    """Axes that differ; empty where the mesh is not known of both."""
    noise: Noise
    step: Shift
    gain: float | None = None
    """Throughput after ÷ before: by tokens where batch or sequence differ and are known, None where
    they differ and are not."""
    direction: Direction
    parts: tuple[Shift, ...]
    """Where a step goes; adds up to the step where all are known."""
    findings: tuple[FindingShift, ...]
    """Largest change first."""
    outcome: Outcome | None = None
    caveats: tuple[str, ...] = ()
