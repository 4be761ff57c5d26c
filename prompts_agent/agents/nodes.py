"""Nodes: what each agent does with the state; pure functions from records to records.

read → analyst → retriever → planner ⇄ critic → report
"""

from __future__ import annotations

from prompts_agent import __version__
from prompts_agent.agents import narrate, retriever
from prompts_agent.agents.analyst.analyst import analyse
from prompts_agent.agents.critic.critic import criticise
from prompts_agent.agents.critic.evidence import Ground
from prompts_agent.agents.model_text import model_text
from prompts_agent.agents.planner.board import MAX_ROUNDS, first_board, next_board, settle
from prompts_agent.agents.planner.case import Case
from prompts_agent.agents.planner.decision import (
    already_best,
    cannot_tell,
    dominating,
    not_sharding,
    nothing_fits,
    nothing_passes,
    worth_proposing,
)
from prompts_agent.agents.planner.search import Found, search
from prompts_agent.agents.report import Abstention, Baseline, Report, WorkloadSummary
from prompts_agent.agents.resolve import resolve
from prompts_agent.agents.state import State
from prompts_agent.errors import InternalError
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.trace.profile import Fact
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Workload

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

        capture = read_trace(request.paths, deep=request.deep)
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
    job = state["job"]
    found = retriever.recall(state["findings"], job.workload, state["profile"], job.axes)
    return {"retrieved": found}


def planner(state: State) -> State:
    """First decides whether to plan at all; then drafts, and on later rounds mends and replaces."""
    board, case, found = state.get("board"), state.get("case"), state.get("found")
    if board is not None and case is not None and found is not None:
        candidates = worth_proposing(found, _workload(state).objective)
        return {"board": next_board(board, state["reviews"], candidates, case)}
    abstained = _without_a_search(state)
    if abstained is not None:
        return {"abstained": abstained}
    workload = _workload(state)
    found = search(workload)
    candidates = worth_proposing(found, workload.objective)
    abstained = nothing_fits(found) or already_best(
        found, candidates, workload.objective, state["findings"]
    )
    if abstained is not None:
        return {"found": found, "abstained": abstained}
    case = _case(state, workload, found)
    return {
        "found": found,
        "case": case,
        "board": first_board(candidates, case, state["request"].top),
    }


def _case(state: State, workload: Workload, found: Found) -> Case:
    retrieved, ran = state["retrieved"], workload.baseline
    return Case(
        workload=workload,
        findings=state["findings"],
        moves=retrieved.moves,
        titles={item.recipe_id: item.title for item in retrieved.evidence},
        today=found.today,
        # A file's baseline for other devices still tells which degrees ran.
        traced=state["job"].traced or (ran.mesh.used() if ran is not None else {}),
        axes=state["job"].axes,
    )


def _without_a_search(state: State) -> Abstention | None:
    findings, retrieved = state["findings"], state["retrieved"]
    first = dominating(findings)
    if first is not None:
        return not_sharding(first, retrieved.cures_of(first.kind))
    poor = any(finding.kind is FindingKind.TRACE_TOO_POOR for finding in findings)
    return cannot_tell(state["job"].missing, poor=poor)


def _workload(state: State) -> Workload:
    workload = state["job"].workload
    if workload is None:
        raise InternalError(
            "a search without a workload",
            rule="a job that is not known is answered before the search",
            cure="Report the command and its input.",
        )
    return workload


def after_planner(state: State) -> str:
    """The critic sees drafts; an abstention goes straight to the report."""
    return "report" if state.get("abstained") is not None else "critic"


def critic(state: State) -> State:
    """Reviews every draft; on the last round what does not pass is dropped."""
    board, found = state.get("board"), state.get("found")
    if board is None or found is None:
        return {"reviews": ()}
    ground = Ground(
        facts=_facts(state),
        moves=state["retrieved"].moves,
        # Where nothing surely fits, what may fit is proposed with that warning.
        upper_bound_must_fit=found.surely_fits,
    )
    reviews = criticise(board.drafts, search_space(_workload(state)), ground)
    # Without drafts the ranking is exhausted: there is nothing left to send back.
    last = board.round >= MAX_ROUNDS or not board.drafts
    if last and not any(review.passed for review in reviews):
        return {"reviews": reviews, "abstained": nothing_passes(settle(board, reviews))}
    return {"reviews": reviews}


def after_critic(state: State) -> str:
    """Back to the planner with reasons while a draft fails and rounds are left."""
    board = state.get("board")
    if board is None or board.round >= MAX_ROUNDS:
        return "report"
    return "report" if all(review.passed for review in state["reviews"]) else "planner"


def _facts(state: State) -> tuple[Fact, ...]:
    profile = state["profile"]
    return profile.facts if profile is not None else ()


def report(state: State) -> State:
    """Everything on one page, placeholders filled in."""
    job, found, board = state["job"], state.get("found"), state.get("board")
    facts, reviews = _facts(state), state.get("reviews", ())
    proposed = narrate.proposals(board, reviews, facts) if board is not None else ()
    return {
        "report": Report(
            tool_version=__version__,
            trace=state["trace"],
            profile=state["profile"],
            workload=_summary(job.workload),
            baseline=_baseline(job.workload, found),
            findings=narrate.filled_findings(state["findings"], facts),
            evidence=state["retrieved"].evidence,
            proposals=proposed,
            rejected=settle(board, reviews) if board is not None else (),
            abstained=narrate.filled_abstention(state.get("abstained"), facts),
            search=found.count if found is not None else None,
            caveats=(*job.caveats, *narrate.caveats(found)),
            other_objective=narrate.other_objective(found, proposed),
        )
    }


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
        assumptions=workload.assumptions,
    )


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
        source=measured.source if measured is not None else "the workload's baseline",
    )
