"""The analyst: runs every detector and orders what they find by the seconds at stake."""

from __future__ import annotations

from collections.abc import Callable

from prompts_agent.agents.analyst import (
    collectives,
    host,
    matmuls,
    memory,
    pipeline,
    quality,
    roofline,
    straggler,
    weights,
)
from prompts_agent.agents.analyst.cite import finding, sentence
from prompts_agent.agents.analyst.derive import with_derived_facts
from prompts_agent.agents.finding import Finding
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.workload import Workload

__all__ = ["DETECTORS", "analyse"]

Detector = Callable[[Profile, Workload | None], list[Finding]]

DETECTORS: tuple[Detector, ...] = (
    collectives.detect,
    host.detect,
    straggler.detect,
    roofline.detect,
    matmuls.detect,
    pipeline.detect,
    memory.detect,
    weights.detect,
    # Last: what a trace cannot tell is no cause, whatever else it shows.
    quality.detect,
)


def analyse(profile: Profile, workload: Workload | None) -> tuple[Profile, tuple[Finding, ...]]:
    """The profile with the facts that the findings derive, and the findings, costliest first.

    Findings without seconds come last, in the order of DETECTORS. Where nothing is found and the
    trace could have told, a finding of kind `none` says so.
    """
    profile = with_derived_facts(profile, workload)
    found = [item for detect in DETECTORS for item in detect(profile, workload)]
    if not found:
        found = [_nothing(profile)]
    # sorted() is stable, so equal seconds keep the detectors' order.
    ordered = sorted(found, key=lambda f: -(f.seconds_per_step or 0.0))
    return profile, tuple(ordered)


def _nothing(profile: Profile) -> Finding:
    return finding(
        profile,
        FindingKind.NONE,
        title=sentence(
            profile,
            "No single cause stands out in a step of {fact:step_time}",
            "No single cause stands out",
        ),
        detail="No wait, transfer or collective is above its threshold.",
        is_sharding=True,
        fact_ids=("step_time", "breakdown.compute"),
    )
