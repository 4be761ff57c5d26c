"""Likeness: whether two runs are of one job, judged by what the traces themselves tell."""

from __future__ import annotations

from collections.abc import Iterator

from prompts_agent.agents.comparison.comparison import Likeness
from prompts_agent.agents.comparison.side import Side
from prompts_agent.agents.model_text import dims_text
from prompts_agent.agents.placeholders import scrub
from prompts_agent.units import format_flops

__all__ = ["contradictions", "likeness"]

WORK_RATIO = 1.4
"""FLOPs of a step, all devices: recomputing every layer adds a third, cutting KV heads repeats a
little; another model or batch is mostly further away."""


def likeness(before: Side, after: Side) -> tuple[Likeness, ...]:
    """Chip, devices, model, phase, batch and sequence; FLOPs where model or batch are not told."""
    found = [*_hardware(before, after), *_job(before, after)]
    if any(item.same is None for item in found):
        found += _work(before, after)
    return tuple(found)


def contradictions(side: Side) -> tuple[str, ...]:
    """What the user says of the job and the trace tells otherwise, a clause each."""
    given, told = side.job.workload, side.told
    if given is None or told is None:
        return ()
    pairs = {
        "model": (dims_text(given.model), dims_text(told.model)),
        "chip": (given.topology.chip, told.topology.chip),
        "devices": (str(given.topology.devices), str(told.topology.devices)),
        "global batch": (str(given.global_batch), str(told.global_batch)),
        "sequence": (str(given.sequence), str(told.sequence)),
    }
    if given.phase.is_training != told.phase.is_training:
        pairs["phase"] = (given.phase.value, told.phase.value)
    return tuple(
        f"the {what} is {said} by the job that was given, and {seen} by the trace"
        for what, (said, seen) in pairs.items()
        if said != seen
    )


def _hardware(before: Side, after: Side) -> Iterator[Likeness]:
    chips = [scrub(s.profile.device_kind or s.profile.device_label) for s in (before, after)]
    yield _item("chip", *chips)
    counts = [s.profile.devices_in_job for s in (before, after)]
    yield _item("devices", *(None if n is None else str(n) for n in counts))


def _job(before: Side, after: Side) -> Iterator[Likeness]:
    one, two = before.told, after.told
    pairs = {
        "model": [None if w is None else dims_text(w.model) for w in (one, two)],
        "phase": [None if w is None else w.phase.value for w in (one, two)],
        "global batch": [None if w is None else str(w.global_batch) for w in (one, two)],
        "sequence": [None if w is None else str(w.sequence) for w in (one, two)],
        "weights": [None if w is None else w.precision.weights for w in (one, two)],
    }
    for what, (first, second) in pairs.items():
        yield _item(what, first, second)


def _item(what: str, before: str | None, after: str | None) -> Likeness:
    same = None if before is None or after is None else before == after
    return Likeness(what=what, before=before, after=after, same=same)


def _work(before: Side, after: Side) -> Iterator[Likeness]:
    one, two = _flops(before), _flops(after)
    if one is None or two is None:
        return
    yield Likeness(
        what="FLOPs of a step, all devices",
        before=format_flops(one),
        after=format_flops(two),
        same=max(one, two) <= WORK_RATIO * min(one, two),
    )


def _flops(side: Side) -> float | None:
    profile = side.profile
    devices = profile.devices_in_job or profile.devices_in_trace
    return profile.flops_per_step * devices if profile.flops_per_step else None
