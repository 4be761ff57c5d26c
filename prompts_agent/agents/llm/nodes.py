"""Nodes: where the model has its say in the graph. What code decided is decided before it is asked.

read → analyst+ → retriever+ → planner ⇄ critic → weigh ⇄ attack → report

`analyst+` and `retriever+` are the agents with the model's turn behind their own; `weigh` is the
planner's turn and `attack` the critic's, which may send the planner back once.
"""

from __future__ import annotations

from collections.abc import Callable

from prompts_agent.agents.llm.analyst import analyst
from prompts_agent.agents.llm.retriever import retriever
from prompts_agent.agents.llm.session import Session
from prompts_agent.agents.opinion import Opinion
from prompts_agent.agents.state import State

__all__ = ["ATTACK", "MOST_WEIGHINGS", "WEIGH", "after_attack", "model_nodes", "with_model"]

Node = Callable[[State], State]
WEIGH, ATTACK = "weigh", "attack"
MOST_WEIGHINGS = 2


def with_model(name: str, node: Node, session: Session) -> Node:
    """An agent's node, and behind it the model's turn where it has one."""
    turns = {"analyst": _analyst, "retriever": _retriever, "report": _report}
    if name not in turns:
        return node

    def both(state: State) -> State:
        done = node(state)
        return done | turns[name](state | done, session)

    return both


def model_nodes(session: Session) -> dict[str, Node]:
    """The nodes that are there only with a model."""
    return {
        WEIGH: lambda state: _weigh(state, session),
        ATTACK: lambda state: _attack(state, session),
    }


def after_attack(state: State) -> str:
    """Back to the planner's model where the critic's sent a layout back, once."""
    return (
        WEIGH
        if state.get("objections") and state.get("weighings", 0) < MOST_WEIGHINGS
        else "report"
    )


def _opinion(state: State, session: Session) -> Opinion:
    return state.get("opinion") or session.opinion()


def _analyst(state: State, session: Session) -> State:
    return {"opinion": analyst(state, session)}


def _retriever(state: State, session: Session) -> State:
    retrieved, opinion = retriever(state, session, _opinion(state, session))
    return {"retrieved": retrieved, "opinion": opinion}


def _weigh(state: State, session: Session) -> State:
    from prompts_agent.agents.llm.planner import weigh

    weighings = state.get("weighings", 0) + 1
    return weigh(state, session, _opinion(state, session)) | {"weighings": weighings}


def _attack(state: State, session: Session) -> State:
    from prompts_agent.agents.llm.critic import attack

    return attack(state, session, _opinion(state, session))


def _report(state: State, session: Session) -> State:
    opinion = session.account(_opinion(state, session))
    return {"report": state["report"].model_copy(update={"opinion": opinion})}
