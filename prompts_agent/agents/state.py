"""State: what travels along the graph. Values are frozen; a node replaces, never edits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from prompts_agent.agents.critic.review import Review
from prompts_agent.agents.finding import Finding
from prompts_agent.agents.opinion import Opinion
from prompts_agent.agents.report import Abstention, Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.agents.resolve import Job
from prompts_agent.agents.retriever import Retrieved
from prompts_agent.trace.profile import Profile, TraceFile

if TYPE_CHECKING:
    from prompts_agent.agents.planner.board import Board
    from prompts_agent.agents.planner.case import Case
    from prompts_agent.agents.planner.search import Found
else:
    # langgraph asks for the types at run time; these would load the search and the estimator.
    Board = Case = Found = Any

__all__ = ["State"]


class State(TypedDict, total=False):
    """A key is there from the node on that writes it (named in its comment)."""

    request: DiagnoseRequest  # the caller
    profile: Profile | None  # read; analyst appends derived facts
    trace: TraceFile | None  # read
    job: Job  # read
    findings: tuple[Finding, ...]  # analyst
    retrieved: Retrieved  # retriever
    found: Found | None  # planner, first round
    case: Case | None  # planner, first round
    board: Board | None  # planner
    reviews: tuple[Review, ...]  # critic
    abstained: Abstention | None  # planner or critic
    opinion: Opinion  # analyst and every later node, with a language model only
    objections: tuple[dict[str, str], ...]  # attack, with a language model only
    weighings: int  # weigh, with a language model only
    report: Report  # report
