"""A trace that is too poor to say where the time goes."""

from __future__ import annotations

from prompts_agent.agents.analyst.cite import finding
from prompts_agent.agents.finding import Finding
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.workload import Workload

__all__ = ["MIN_STEPS", "detect"]

MIN_STEPS = 2
"""Of one step nobody can say whether it was a typical one."""


def detect(profile: Profile, workload: Workload | None) -> list[Finding]:  # noqa: ARG001
    """One finding that lists what is lacking, where the rest cannot stand on the trace."""
    lacks = _lacks(profile)
    if not lacks:
        return []
    return [
        finding(
            profile,
            FindingKind.TRACE_TOO_POOR,
            title="The trace says too little: " + "; ".join(lacks),
            detail="Capture a few consecutive steps of the running job on its real devices, with "
            "device events and HLO, and diagnose again.",
            is_sharding=False,
            fact_ids=("devices.job", "devices.trace"),
        )
    ]


def _lacks(profile: Profile) -> list[str]:
    lacks = []
    if profile.structure_only and profile.devices_in_trace == 0:
        lacks.append("it is a compiled program and no run of it")
    elif profile.structure_only:
        lacks.append("its devices are virtual, so their times mean nothing")
    elif profile.step is None:
        lacks.append("no repeated step was found")
    elif profile.step.count < MIN_STEPS:
        lacks.append("only one whole step was captured")
    if not profile.structure_only and profile.breakdown.compute_s is None:
        lacks.append("no device events tell compute from waiting")
    return lacks
