"""The critic's model: attacks each proposal, and asks the planner to look again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prompts_agent.agents.llm.analyst import rejection_of
from prompts_agent.agents.llm.answers import AttackItem, CriticAnswer, items
from prompts_agent.agents.llm.rows import cause_rows, job_row, layout_rows, recipe_rows
from prompts_agent.agents.llm.session import Rejection, Session, Task
from prompts_agent.agents.llm.table import Table, table_of
from prompts_agent.agents.opinion import Attack, Opinion
from prompts_agent.agents.state import State

__all__ = ["attack"]

MOST_PER_LAYOUT = 2


@dataclass(frozen=True, slots=True)
class _Answer:
    attacks: tuple[Attack, ...] = ()
    objections: tuple[dict[str, str], ...] = ()


def attack(state: State, session: Session, opinion: Opinion) -> State:
    """The opinion with what is held against each proposal, and what the planner is to answer."""
    table = table_of(state)
    if table is None:
        return {"opinion": opinion}
    task = Task(
        node="critic",
        data={
            "job": job_row(state["job"]),
            "causes": cause_rows(state["findings"], table.ids, state["job"]),
            "recipes": recipe_rows(table.ids, table.case.moves),
            "layouts": layout_rows(table.drafts, range(len(table.drafts))),
        },
        inputs=table.inputs,
        form=CriticAnswer,
        judge=lambda raw: _judge(raw, table),
    )
    answer = session.consult(task) or _Answer()
    held = session.account(opinion.model_copy(update={"attacks": answer.attacks}))
    return {"opinion": held, "objections": answer.objections}


def _judge(raw: Mapping[str, Any], table: Table) -> tuple[_Answer, list[Rejection]]:
    found, wrong = items(raw, "attacks", AttackItem)
    rejected = [Rejection("not the form asked for", line) for line in wrong]
    kept: dict[int, list[Attack]] = {}
    objections: list[dict[str, str]] = []
    for item in found:
        place = table.names.get(item.layout)
        if place is None:
            rejected.append(Rejection("unknown id", item.layout[:80]))
            continue
        gate = table.gate(place)
        text, falsifier = gate.rule(item.text), gate.rule(item.falsified_by)
        rejected += [
            rejection_of(ruling, words)
            for ruling, words in ((text, item.text), (falsifier, item.falsified_by))
            if not ruling.stands
        ]
        if not text.stands or len(kept.get(place, ())) == MOST_PER_LAYOUT:
            continue
        if item.send_back:
            # With placeholders: what they stand for may hold names, which stay here.
            objections.append({"layout": item.layout, "kind": item.kind, "text": text.marked})
        kept.setdefault(place, []).append(
            Attack(
                rank=place + 1,
                kind=item.kind,
                text=text.text,
                falsified_by=falsifier.text if falsifier.stands else None,
                sent_back=item.send_back,
            )
        )
    attacks = tuple(one for place in sorted(kept) for one in kept[place])
    return _Answer(attacks, tuple(objections)), rejected
