"""Nodes: what each agent does with the state; pure functions from records to records.

read → analyst → retriever → planner ⇄ critic → report

What the planner and the critic do is in `prompts_agent.agents.planning`, which is loaded only where
there is something to plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompts_agent import __version__
from prompts_agent.agents import narrate, retriever
from prompts_agent.agents.analyst.analyst import analyse
from prompts_agent.agents.model_text import model_text
from prompts_agent.agents.planner.decision import cannot_tell, dominating, not_sharding
from prompts_agent.agents.report import Abstention, Baseline, Report, WorkloadSummary
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.agents.resolve import resolve
from prompts_agent.agents.state import State
from prompts_agent.estimate.calibration import Constant, load_calibration
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.workload.workload import Workload

if TYPE_CHECKING:
    from prompts_agent.agents.planner.search import Found

__all__ = [
    "after_critic",
    "after_planner",
    "analyst",
    "critic",
    "planner",
    "read",
    "recall",
    "report",
]


def read(state: State) -> State:
    """Measures the trace; settles model, hardware and batch from flags and from the profile."""
    request, trace, profile = state["request"], None, state.get("profile")
    if profile is None and request.paths:
        from prompts_agent.trace.measure.profile import measure
        from prompts_agent.trace.read import read as read_trace

        capture = read_trace(request.paths, xprof=request.xprof)
        trace, profile = capture.file, measure(capture)
    return {"trace": trace, "profile": profile, "job": resolve(request, profile)}


def analyst(state: State) -> State:
    """Finds causes of lost time; without a trace there is nothing to find."""
    profile = state["profile"]
    if profile is None:
        return {"findings": ()}
    profile, findings = analyse(profile, state["job"].workload)
    return {"profile": profile, "findings": findings}


def recall(state: State) -> State:
    """Asks the knowledge base."""
    job, request = state["job"], state["request"]
    found = retriever.recall(
        state["findings"],
        job.workload,
        state["profile"],
        job.axes,
        request.kb_path,
        request.kb,
    )
    return {"retrieved": found}


def planner(state: State) -> State:
    """First decides whether to plan at all; then drafts, and on later rounds mends and replaces."""
    if state.get("board") is None:
        abstained = _without_a_search(state)
        if abstained is not None:
            return {"abstained": abstained}
    from prompts_agent.agents import planning

    if state.get("board") is None:
        return planning.first_round(state)
    return planning.next_round(state)


def _without_a_search(state: State) -> Abstention | None:
    findings, retrieved = state["findings"], state["retrieved"]
    first = dominating(findings)
    if first is not None:
        return not_sharding(first, retrieved.cures_of(first.kind))
    poor = any(finding.kind is FindingKind.TRACE_TOO_POOR for finding in findings)
    return cannot_tell(state["job"].missing, poor=poor)


def after_planner(state: State) -> str:
    """The critic sees drafts; an abstention goes straight to the report."""
    return "report" if state.get("abstained") is not None else "critic"


def critic(state: State) -> State:
    """Reviews every draft; on the last round what does not pass is dropped."""
    from prompts_agent.agents import planning

    return planning.reviewed(state)


def after_critic(state: State) -> str:
    """Back to the planner with reasons while a draft fails and rounds are left."""
    from prompts_agent.agents import planning

    return "report" if planning.is_settled(state) else "planner"


def report(state: State) -> State:
    """Everything on one page, placeholders filled in."""
    job, profile, found = state["job"], state["profile"], state.get("found")
    facts = profile.facts if profile is not None else ()
    plain = Report(
        tool_version=__version__,
        trace=state["trace"],
        profile=profile,
        workload=_summary(job.workload),
        baseline=_baseline(job.workload, found),
        findings=narrate.filled_findings(state["findings"], facts),
        evidence=state["retrieved"].evidence,
        abstained=narrate.filled_abstention(state.get("abstained"), facts),
        search=found.count if found is not None else None,
        caveats=(*job.caveats, *narrate.caveats(found), *_foreign(state["request"], found)),
        constants=_constants(job.workload) if found is not None else {},
    )
    return {"report": plain if state.get("board") is None else _planned(plain, state)}


def _planned(plain: Report, state: State) -> Report:
    from prompts_agent.agents import planning

    proposed = planning.proposed(state)
    return plain.model_copy(
        update={
            "proposals": proposed,
            "caveats": (*plain.caveats, *planning.compiler_caveats(state)),
            "rejected": planning.rejected(state),
            "other_objective": narrate.other_objective(state.get("found"), proposed),
            "separate_pools": planning.separate_pools(state, proposed),
        }
    )


def _summary(workload: Workload | None) -> WorkloadSummary | None:
    if workload is None:
        return None
    return WorkloadSummary(
        name=workload.name,
        model=model_text(workload.model),
        hardware=str(workload.topology),
        devices=workload.topology.devices,
        phase=workload.phase,
        objective=workload.objective,
        global_batch=workload.global_batch,
        sequence=workload.sequence,
        dims=workload.model,
        precision=workload.precision,
        traffic=workload.traffic,
        assumptions=workload.assumptions,
    )


def _foreign(request: DiagnoseRequest, found: Found | None) -> tuple[str, ...]:
    """Whose constants they are, where they are not this package's."""
    if request.calibration is None or found is None:
        return ()
    return (f"Estimates use the constants of {request.calibration.name}, not those that ship.",)


def _constants(workload: Workload | None) -> dict[str, Constant]:
    """The numbers that entered the estimates of the workload."""
    if workload is None:
        return {}
    # Not above: a trace that tells nothing needs no estimate, nor NumPy.
    from prompts_agent.estimate.setting import constants_key

    entries = load_calibration().entries(*constants_key(workload))
    return {name: entries[name] for name in sorted(entries)}


def _baseline(workload: Workload | None, found: Found | None) -> Baseline | None:
    if workload is None or workload.baseline is None:
        return None
    measured = workload.baseline_measured
    today = found.today if found is not None else None
    return Baseline(
        layout=workload.baseline,
        measured_step_time_s=measured.step_time_s if measured is not None else None,
        predicted_step_time_s=today.predicted.step_time_s if today is not None else None,
        hbm_bytes=today.predicted.hbm_bytes if today is not None else None,
        terms=today.terms if today is not None else {},
        scale=found.scale if found is not None else None,
        source=measured.source if measured is not None else "the workload's baseline",
    )
