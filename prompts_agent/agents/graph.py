"""The graph: read → analyst → retriever → planner ⇄ critic → report, and the two ways to run it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from prompts_agent.agents import nodes
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.agents.state import State
from prompts_agent.errors import InputError
from prompts_agent.estimate.calibration import read_calibration, using
from prompts_agent.trace.profile import Profile

if TYPE_CHECKING:
    from prompts_agent.agents.llm.session import Session

__all__ = ["NODES", "build_graph", "run_diagnosis", "run_plan", "run_profile"]

Node = Callable[[State], State]
Progress = Callable[[str], None]

NODES: dict[str, Node] = {
    "read": nodes.read,
    "analyst": nodes.analyst,
    "retriever": nodes.recall,
    "planner": nodes.planner,
    "critic": nodes.critic,
    "report": nodes.report,
}


def build_graph(
    progress: Progress | None = None, session: Session | None = None, checkpointer: Any = None
) -> Any:  # langgraph's compiled graph
    """The compiled StateGraph. `progress` is called with a node's name when it starts.

    With a `session` a language model has its turn behind the agents' own.
    """
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(State)
    nodes_of_all = NODES if session is None else _with_model(session)
    for name, node in nodes_of_all.items():
        graph.add_node(name, _announced(name, node, progress))
    graph.add_edge(START, "read")
    graph.add_edge("read", "analyst")
    graph.add_edge("analyst", "retriever")
    graph.add_edge("retriever", "planner")
    graph.add_conditional_edges("planner", nodes.after_planner, ["critic", "report"])
    if session is None:
        graph.add_conditional_edges("critic", nodes.after_critic, ["planner", "report"])
    else:
        from prompts_agent.agents.llm.nodes import ATTACK, WEIGH, after_attack

        settled: dict[Hashable, str] = {"planner": "planner", "report": WEIGH}
        graph.add_conditional_edges("critic", nodes.after_critic, settled)
        graph.add_edge(WEIGH, ATTACK)
        graph.add_conditional_edges(ATTACK, after_attack, [WEIGH, "report"])
    graph.add_edge("report", END)
    return graph.compile(checkpointer=checkpointer)


def _with_model(session: Session) -> dict[str, Node]:
    from prompts_agent.agents.llm.nodes import model_nodes, with_model

    own = {name: with_model(name, node, session) for name, node in NODES.items()}
    return own | model_nodes(session)


def _announced(name: str, node: Node, progress: Progress | None) -> Any:
    def announced(state: State) -> State:
        if progress is not None:
            progress(name)
        return node(state)

    return announced


def run_diagnosis(
    request: DiagnoseRequest,
    progress: Progress | None = None,
    session: Session | None = None,
) -> Report:
    """Diagnoses the trace at `request.paths` and proposes layouts, or says why none.

    Raises `TraceError` and the other `InputError`s for input that is wrong, never for a job that
    cannot be told: that is an abstention in the report.
    """
    if not request.paths:
        raise InputError(
            "no trace",
            rule="a diagnosis reads at least one trace",
            cure="Give a file or directory, or plan without a trace with `prompts plan`.",
        )
    return _run({"request": request}, request, progress, session)


def run_profile(
    profile: Profile,
    request: DiagnoseRequest,
    progress: Progress | None = None,
    session: Session | None = None,
) -> Report:
    """The diagnosis of a profile that was measured already; `request.paths` are not read."""
    return _run({"request": request, "profile": profile}, request, progress, session)


def run_plan(
    request: DiagnoseRequest,
    progress: Progress | None = None,
    session: Session | None = None,
) -> Report:
    """Proposes layouts for a workload file or for flags; reads no trace."""
    planned = request.model_copy(update={"paths": ()})
    return _run({"request": planned}, planned, progress, session)


def _run(
    state: State,
    request: DiagnoseRequest,
    progress: Progress | None,
    session: Session | None = None,
) -> Report:
    if not request.tracing:
        # langgraph brings a tracing client that sends every run's state where these say so.
        os.environ["LANGSMITH_TRACING"] = "false"
        os.environ["LANGCHAIN_TRACING_V2"] = "false"
    started = time.perf_counter()
    path = request.calibration
    with using(read_calibration(path) if path is not None else None):
        report = _invoked(state, progress, session)
    if not request.timings or report.search is None:
        return report
    taken = report.search.model_copy(update={"wall_s": time.perf_counter() - started})
    return report.model_copy(update={"search": taken})


def _invoked(state: State, progress: Progress | None, session: Session | None) -> Report:
    if session is None:
        report: Report = build_graph(progress).invoke(state)["report"]
        return report
    from prompts_agent.agents.llm.resume import run_with_model

    try:
        return run_with_model(state, progress, session)
    finally:
        session.close()
