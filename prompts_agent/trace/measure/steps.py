"""Steps: the repeated runs of the program that takes most of the device's time.

Host annotations are not used where the device tells: `StepTraceAnnotation` spans the dispatch of a
step, which returns long before the device is done. The last run is often cut off by the end of the
capture and the first one carries its start, so both are dropped where enough runs remain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import DeviceEvents, ModuleRun

__all__ = ["DeviceSteps", "find_steps"]

Int64s = NDArray[np.int64]

_ENOUGH_RUNS = 4
_CUT_OFF = 0.5  # a first or last run shorter than this part of the median was cut off
_TYPICAL = 1.5  # steps up to this multiple of the median period count as typical
_RANGE_IN_SDS = {3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 7: 2.704}
"""Expected range of n normal values in standard deviations (Tippett, Biometrika 17, 1925)."""
_QUARTILES_IN_SDS = 1.349


@dataclass(frozen=True, slots=True)
class DeviceSteps:
    """Kept runs of the main program on one device; times in picoseconds.

    Step i lasts from `start[i]` to `until[i]`, the next run's start; the last has no next run
    unless one was dropped, and then ends with its own run.
    """

    program: str
    program_id: int | None
    start: Int64s
    duration: Int64s
    until: Int64s
    runs: int
    has_periods: bool
    from_markers: bool = False

    def __len__(self) -> int:
        return int(self.start.shape[0])

    @property
    def median_ps(self) -> float:
        """Median duration of a run."""
        return float(np.median(self.duration))

    @property
    def period_ps(self) -> float | None:
        """Median from start to start, None where no run follows another."""
        return float(np.median(self.until - self.start)) if self.has_periods else None

    @property
    def step_ps(self) -> float:
        """The period where there is one, else the run."""
        return self.median_ps if self.period_ps is None else self.period_ps

    @property
    def spread_ps(self) -> float | None:
        """Standard deviation of one step, from the quartiles, so that a pause or two count for
        little; of fewer than eight steps from their range. None for fewer than three.
        """
        values = self.until - self.start if self.has_periods else self.duration
        count = len(self)
        if count in _RANGE_IN_SDS:
            return float(np.ptp(values)) / _RANGE_IN_SDS[count]
        if count < min(_RANGE_IN_SDS):
            return None
        low, high = np.percentile(values, (25, 75))
        return float(high - low) / _QUARTILES_IN_SDS

    def typical(self) -> NDArray[np.bool_]:
        """Steps without an outlier's pause (a checkpoint, a compile) after their run."""
        return (self.until - self.start) <= _TYPICAL * self.step_ps

    def derived_from(self, device: str) -> str:
        """How the step time came about, in words."""
        what = "marked steps" if self.from_markers else f"runs of {self.program}"
        dropped = self.runs - len(self)
        rest = f", {dropped} of {self.runs} at the ends dropped" if dropped else ""
        return f"median of {len(self)} {what} on {device}{rest}"


def find_steps(events: DeviceEvents, *, by_time: bool = True) -> DeviceSteps | None:
    """The steps of a device: runs of its main program, else its marked steps; None without both.

    The main program is that of most time, or, where times mean nothing, of most runs.
    """
    runs = _main_runs(events.modules, by_time)
    if runs:
        return _steps(
            runs[0].name,
            runs[0].program_id,
            np.array([run.start_ps for run in runs], np.int64),
            np.array([run.duration_ps for run in runs], np.int64),
        )
    if events.step_markers:
        markers = np.array(sorted(events.step_markers), np.int64)
        return _steps("marked steps", None, markers[:, 0], markers[:, 1], from_markers=True)
    return None


def _main_runs(modules: Sequence[ModuleRun], by_time: bool) -> list[ModuleRun]:
    by_program: dict[tuple[str, int | None], list[ModuleRun]] = defaultdict(list)
    for run in modules:
        by_program[run.name, run.program_id].append(run)
    if not by_program:
        return []

    def weight(key: tuple[str, int | None]) -> tuple[int, int, str]:
        runs = by_program[key]
        time_ps = sum(run.duration_ps for run in runs)
        # By name last, so that the choice between equals is stable.
        return (*((time_ps, len(runs)) if by_time else (len(runs), time_ps)), key[0])

    main = by_program[max(by_program, key=weight)]
    return sorted(main, key=lambda run: run.start_ps)


def _steps(
    program: str,
    program_id: int | None,
    start: Int64s,
    duration: Int64s,
    *,
    from_markers: bool = False,
) -> DeviceSteps:
    first, last = _kept(duration)
    # The run after the last kept one, if there is one, still tells where that step ended.
    following = start[first + 1 : last + 1]
    until = np.append(following, [] if following.shape[0] == last - first else start[-1:])
    until = until.astype(np.int64)
    has_periods = following.shape[0] > 0
    if following.shape[0] < last - first:
        until[-1] = start[last - 1] + duration[last - 1]
        if has_periods:
            # Its gap to the next step is unknown: take the others' period.
            until[-1] = start[last - 1] + int(np.median(following - start[first : last - 1]))
    return DeviceSteps(
        program,
        program_id,
        start[first:last],
        duration[first:last],
        until,
        int(start.shape[0]),
        has_periods,
        from_markers,
    )


def _kept(duration: Int64s) -> tuple[int, int]:
    """Runs to keep, as a range: without the first and last, or without cut-off ones."""
    count = duration.shape[0]
    if count >= _ENOUGH_RUNS:
        return 1, count - 1
    first, last = 0, count
    if count >= 2:
        typical = np.median(duration) if count > 2 else duration.max()
        if duration[-1] < _CUT_OFF * typical:
            last -= 1
        if duration[0] < _CUT_OFF * typical and last - first > 1:
            first += 1
    return first, last
