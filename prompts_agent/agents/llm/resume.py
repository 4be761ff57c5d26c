"""Resume: a run with a model as LangGraph checkpoints, so that an interrupted one goes on.

After every node the state lies in a file of this run's own; a run that comes to its end removes it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prompts_agent.agents.llm.checkpoint import checkpoint_path, saver
from prompts_agent.agents.llm.session import Session
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.agents.state import State

__all__ = ["run_with_model"]

_THREAD = {"configurable": {"thread_id": "run"}}


def run_with_model(
    state: State,
    progress: Callable[[str], None] | None,
    session: Session,
) -> Report:
    """The report of the graph with the model's turns.

    A session that resumes goes on from the last node that an interrupted run of the same request
    came to. Where checkpoints cannot be written, the run goes on without, and a note says so.
    """
    from prompts_agent.agents.graph import build_graph

    if not session.keeps_checkpoints:
        report: Report = build_graph(progress, session).invoke(state)["report"]
        return report
    path = checkpoint_path(state["request"], session.config)
    with contextlib.ExitStack() as stack:
        try:
            if not session.resumes:
                _remove(path)
            keeper = stack.enter_context(saver(path))
            graph = build_graph(progress, session, checkpointer=keeper)
            begin = _beginning(graph, state, session)
        except (OSError, sqlite3.Error, ValueError, KeyError) as error:
            session.notes.append(f"no checkpoint is kept: {type(error).__name__}: {error}")
            done: Report = build_graph(progress, session).invoke(state)["report"]
        else:
            done = graph.invoke(begin, _THREAD, durability="sync")["report"]
    _remove(path)
    return done


def _beginning(graph: Any, state: State, session: Session) -> State | None:
    """None, which to LangGraph means where it stopped; else the state to start from."""
    if not session.resumes:
        return state
    kept = graph.get_state(_THREAD)
    request: DiagnoseRequest | None = kept.values.get("request")
    if request is None or not kept.next:
        session.notes.append("nothing to resume: this run starts anew")
        return state
    opinion = kept.values.get("opinion")
    if opinion is not None:
        session.take_up(opinion)
    session.notes.append(f"resumed before: {', '.join(kept.next)}")
    return None


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(OSError):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
