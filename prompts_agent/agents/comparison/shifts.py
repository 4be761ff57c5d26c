"""Shifts: the step, its parts and every finding, before and after, in seconds."""

from __future__ import annotations

from prompts_agent.agents.comparison.comparison import FindingShift, Noise, Shift
from prompts_agent.agents.comparison.side import Side
from prompts_agent.agents.finding import Finding, axes_meant
from prompts_agent.agents.placeholders import scrub
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.measure.facts import slug
from prompts_agent.trace.profile import Profile

__all__ = ["finding_shifts", "part_shifts", "shift"]

_PARTS = {
    FindingKind.HOST_TRANSFER: "host_transfer_s",
    FindingKind.INPUT_BOUND: "input_s",
    FindingKind.IDLE_BETWEEN_STEPS: "idle_s",
}
"""Findings that are a part of the step, so that the other run's seconds are known without them."""


def shift(what: str, before_s: float | None, after_s: float | None, noise: Noise) -> Shift:
    """The change of one quantity, held against the noise."""
    change = None if before_s is None or after_s is None else after_s - before_s
    floor = noise.floor_s
    within = None if change is None or floor is None else abs(change) <= floor
    return Shift(
        what=what, before_s=before_s, after_s=after_s, change_s=change, within_noise=within
    )


def part_shifts(before: Side, after: Side, noise: Noise) -> tuple[Shift, ...]:
    """Compute, exposed collectives, host transfer, input, idle."""
    one, two = before.profile.breakdown.model_dump(), after.profile.breakdown.model_dump()
    names = {key: key.removesuffix("_s").replace("_", " ") for key in one}
    return tuple(shift(names[key], one[key], two[key], noise) for key in one)


def finding_shifts(before: Side, after: Side, noise: Noise) -> tuple[FindingShift, ...]:
    """Every finding of either run, largest change first; those without seconds last.

    A collective is the same in both where its kind and axis are. What no finding is about because
    it is below the analyst's threshold still has its seconds from the profile.
    """
    one, two = _by_id(before.findings), _by_id(after.findings)
    found = [
        _shift(key, (one.get(key), two.get(key)), (before, after), noise) for key in {**one, **two}
    ]
    return tuple(sorted(found, key=lambda item: (-abs(item.change_s or 0.0), item.what)))


def _by_id(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    silent = (FindingKind.NONE, FindingKind.TRACE_TOO_POOR)
    return {f.id: f for f in findings if f.kind not in silent}


def _shift(
    key: str,
    found: tuple[Finding | None, Finding | None],
    sides: tuple[Side, Side],
    noise: Noise,
) -> FindingShift:
    finding = found[0] or found[1]
    assert finding is not None  # noqa: S101  (the key is one of either's)
    seconds = [
        own.seconds_per_step if own is not None else _unfound_s(finding, side.profile)
        for own, side in zip(found, sides, strict=True)
    ]
    plain = shift(_name(key, finding), seconds[0], seconds[1], noise)
    both = found[0] is not None and found[1] is not None
    return FindingShift(
        **plain.model_dump(),
        kind=finding.kind,
        axes=axes_meant(finding, {**sides[1].job.axes, **sides[0].job.axes}),
        is_sharding=finding.is_sharding,
        found="both" if both else "before" if found[0] is not None else "after",
    )


def _name(key: str, finding: Finding) -> str:
    """`exposed all-reduce over model`, `idle between steps`."""
    if finding.kind is not FindingKind.EXPOSED_COLLECTIVE:
        return finding.kind.value.replace("_", " ")
    kind = key.split(".")[1]
    where = f"over {scrub(finding.axis)}" if finding.axis else "over an unknown axis"
    return f"exposed {kind} {where}"


def _unfound_s(finding: Finding, profile: Profile) -> float | None:
    """Seconds in a run where the analyst did not find it; None where only a finding would tell."""
    part = _PARTS.get(finding.kind)
    if part is not None:
        value: float | None = getattr(profile.breakdown, part)
        return value
    if finding.kind is FindingKind.RECOMPILING:
        return 0.0 if profile.recompilations == 0 else None
    if finding.kind is not FindingKind.EXPOSED_COLLECTIVE:
        return None
    if profile.breakdown.exposed_collective_s is None:
        return None
    return sum(
        use.exposed_s or 0.0
        for use in profile.collectives
        if finding.id.endswith(f".{use.kind.value}.{slug(use.axis or 'unknown')}")
    )
