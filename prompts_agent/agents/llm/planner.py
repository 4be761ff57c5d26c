"""The planner's model: weighs the proposals against each other, and suggests other layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prompts_agent.agents.critic.critic import WORDS_END, criticise
from prompts_agent.agents.critic.evidence import Ground
from prompts_agent.agents.critic.review import Review
from prompts_agent.agents.llm.analyst import rejection_of, said
from prompts_agent.agents.llm.answers import (
    MOST_EXTRA,
    CaseItem,
    ExtraItem,
    OrderItem,
    PlannerAnswer,
    items,
)
from prompts_agent.agents.llm.extra import considered
from prompts_agent.agents.llm.order import judged_order, overlap
from prompts_agent.agents.llm.rows import cause_rows, job_row, layout_rows, recipe_rows
from prompts_agent.agents.llm.session import Rejection, Session, Task
from prompts_agent.agents.llm.table import Table, table_of
from prompts_agent.agents.opinion import Attack, Considered, Opinion, Order, Said
from prompts_agent.agents.planner.board import reordered
from prompts_agent.agents.state import State
from prompts_agent.workload.search_space import search_space

__all__ = ["weigh"]


@dataclass(frozen=True, slots=True)
class _Answer:
    places: tuple[int, ...]
    why: str
    cases: dict[int, tuple[Said, ...]]
    considered: tuple[Considered, ...]


def weigh(state: State, session: Session, opinion: Opinion) -> State:
    """The board in the model's order where that may stand, and the opinion with its sentences."""
    before = [rank - 1 for rank in opinion.order.before] if opinion.order is not None else None
    table = table_of(state, before)
    if table is None:
        return {"opinion": opinion}
    task = Task(
        node="planner",
        data=_data(state, table),
        inputs=table.inputs,
        form=PlannerAnswer,
        judge=lambda raw: _judge(raw, table),
    )
    answer = session.consult(task)
    if answer is None:
        return {"opinion": session.account(opinion)}
    moved = _moved(table, answer.places)
    places = answer.places if moved is not None else tuple(range(len(table.drafts)))
    merged = _merged(opinion, answer, table, places)
    changed: State = {"opinion": session.account(merged)}
    return changed if moved is None else changed | moved


def _data(state: State, table: Table) -> dict[str, Any]:
    drafts = table.drafts
    overlaps = [
        [f"p{i + 1}", f"p{j + 1}"]
        for i in range(len(drafts))
        for j in range(i + 1, len(drafts))
        if overlap(drafts[i], drafts[j])
    ]
    data: dict[str, Any] = {
        "job": job_row(state["job"]),
        "causes": cause_rows(state["findings"], table.ids, state["job"]),
        "recipes": recipe_rows(table.ids, table.case.moves),
        "layouts": layout_rows(drafts, range(len(drafts))),
        "intervals_overlap": overlaps,
    }
    if state.get("objections"):
        data["objections"] = list(state["objections"])
    return data


def _judge(raw: Mapping[str, Any], table: Table) -> tuple[_Answer, list[Rejection]]:
    places, why, rejected = _order(raw, table)
    shown = {place: rank for rank, place in enumerate(places)}
    cases, more = _cases(raw, table, shown)
    extra, wrong = _extra(raw, table)
    return _Answer(places=places, why=why, cases=cases, considered=extra), [
        *rejected,
        *more,
        *wrong,
    ]


def _order(raw: Mapping[str, Any], table: Table) -> tuple[tuple[int, ...], str, list[Rejection]]:
    old = tuple(range(len(table.drafts)))
    given = raw.get("order")
    if given is None:
        return old, "", []
    found, wrong = items({"order": [given]}, "order", OrderItem)
    if not found:
        return old, "", [Rejection("not the form asked for", line) for line in wrong]
    item = found[0]
    places, rejection = judged_order(item, table)
    if rejection is not None:
        return old, "", [rejection]
    if places == old:
        return old, "", []
    shown = {place: rank for rank, place in enumerate(places)}
    ruling = table.gate(places[0], shown).rule(item.text)
    if not ruling.stands:
        return old, "", [rejection_of(ruling, item.text)]
    return places, ruling.text, []


def _cases(
    raw: Mapping[str, Any], table: Table, shown: Mapping[int, int]
) -> tuple[dict[int, tuple[Said, ...]], list[Rejection]]:
    found, wrong = items(raw, "cases", CaseItem)
    rejected = [Rejection("not the form asked for", line) for line in wrong]
    cases: dict[int, tuple[Said, ...]] = {}
    for item in found:
        place = table.names.get(item.layout)
        if place is None:
            rejected.append(Rejection("unknown id", item.layout[:80]))
            continue
        ruling = table.gate(place, shown).rule(item.text)
        if not ruling.stands:
            rejected.append(rejection_of(ruling, item.text))
            continue
        rank = shown[place] + 1
        if len(cases.get(rank, ())) < 2:
            cases[rank] = (*cases.get(rank, ()), said(ruling))
    return dict(sorted(cases.items())), rejected


def _extra(raw: Mapping[str, Any], table: Table) -> tuple[tuple[Considered, ...], list[Rejection]]:
    found, wrong = items(raw, "extra", ExtraItem, MOST_EXTRA)
    rejected = [Rejection("not the form asked for", line) for line in wrong]
    gate = table.gate(0)
    # The reason is about another layout than those with changes of their own.
    plain = type(gate)(values=table.ids.values, real=gate.real, names=gate.names)
    kept: dict[str, Considered] = {}
    for item in found:
        ruling = plain.rule(item.reason)
        if not ruling.stands:
            rejected.append(rejection_of(ruling, item.reason))
        weighed = considered(item, ruling.text if ruling.stands else None, table)
        kept.setdefault(weighed.suggested, weighed)
    return tuple(kept.values()), rejected


def _moved(table: Table, places: Sequence[int]) -> State | None:
    """The board and its reviews in the new order; None where it is the old one, or where the
    critic's rules object.
    """
    if tuple(places) == tuple(range(len(table.drafts))):
        return None
    board = reordered(table.board, table.reviews, places, table.case, ranks=table.ranks)
    ground = Ground(
        facts=table.facts,
        moves=table.case.moves,
        upper_bound_must_fit=table.found.surely_fits,
        workload=table.workload,
    )
    reviews = criticise(board.drafts, search_space(table.workload), ground)
    if not all(review.passed for review in reviews):
        return None
    return {"board": board, "reviews": tuple(_checked(new, table) for new in reviews)}


def _checked(new: Review, table: Table) -> Review:
    """The review from before the order changed, which may hold a compiler's answer, with the check
    of the sentences as they are now.
    """
    old = next(review for review in table.reviews if review.layout == new.layout)
    words = new.verdict.checks[-1:]
    kept = [text for text in old.verdict.checks if not text.endswith(WORDS_END)]
    place = next(
        (n for n, text in enumerate(old.verdict.checks) if text.endswith(WORDS_END)), len(kept)
    )
    checks = (*kept[:place], *words, *kept[place:])
    return old.model_copy(update={"verdict": old.verdict.model_copy(update={"checks": checks})})


def _merged(opinion: Opinion, answer: _Answer, table: Table, places: Sequence[int]) -> Opinion:
    ranks = tuple(table.ranks[place] + 1 for place in places)
    unchanged = ranks == tuple(sorted(ranks))
    shown = {place: rank for rank, place in enumerate(places)}
    order = None
    if not unchanged:
        kept = opinion.order.reason if opinion.order is not None else ""
        order = Order(before=ranks, reason=answer.why or kept)
    seen = {item.suggested for item in opinion.considered}
    extra = [item for item in answer.considered if item.suggested not in seen]
    return opinion.model_copy(
        update={
            "order": order,
            "cases": opinion.cases | answer.cases if not opinion.attacks else answer.cases,
            "considered": (*opinion.considered, *extra)[:MOST_EXTRA],
            "attacks": tuple(_at(attack, shown) for attack in opinion.attacks),
        }
    )


def _at(attack: Attack, shown: Mapping[int, int]) -> Attack:
    return attack.model_copy(update={"rank": shown[attack.rank - 1] + 1})
