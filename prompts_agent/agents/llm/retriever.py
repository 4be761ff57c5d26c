"""The retriever's model: asks the knowledge base more, and sets recipes aside with a reason.

What treats a finding of this trace cannot be set aside, and more than half never is; a question of
the model goes through the same filter of what applies to the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prompts_agent.agents.llm.analyst import ids_of_state, rejection_of
from prompts_agent.agents.llm.answers import EvidenceItem, QueryItem, RetrieverAnswer, items
from prompts_agent.agents.llm.gate import Gate, clean
from prompts_agent.agents.llm.ids import NAMES, Ids
from prompts_agent.agents.llm.rows import cause_rows, job_row, recipe_rows
from prompts_agent.agents.llm.session import Rejection, Session, Task
from prompts_agent.agents.opinion import Judged, Opinion
from prompts_agent.agents.retriever import Retrieved, moves_of, query
from prompts_agent.agents.state import State
from prompts_agent.errors import PromptsError
from prompts_agent.knowledge.evidence import Evidence
from prompts_agent.knowledge.library import find_recipe
from prompts_agent.knowledge.query import Query, matched
from prompts_agent.knowledge.vocabulary import FindingKind

if TYPE_CHECKING:
    from prompts_agent.knowledge.base import KnowledgeBase

__all__ = ["retriever"]

MOST_QUERIES = 3
MOST_FOUND = 3
"""Recipes that the model's questions may add, in all."""
_LONGEST_QUERY = 120


@dataclass(frozen=True, slots=True)
class _Answer:
    queries: tuple[tuple[str, Query], ...]
    judged: tuple[Judged, ...]


def retriever(state: State, session: Session, opinion: Opinion) -> tuple[Retrieved, Opinion]:
    """What was retrieved, with what the model found besides and without what it set aside."""
    if not state["retrieved"].evidence:
        return state["retrieved"], opinion
    from prompts_agent.knowledge.retrieve import open_base

    request = state["request"]
    try:
        with open_base(request.kb_path, request.kb) as base:
            return _consulted(state, session, opinion, base)
    except PromptsError as error:  # a server that was there a moment ago
        session.failures.append(f"retriever: {error.value}: {error.rule}"[:200])
        return state["retrieved"], session.account(opinion)


def _consulted(
    state: State, session: Session, opinion: Opinion, base: KnowledgeBase
) -> tuple[Retrieved, Opinion]:
    retrieved, ids = state["retrieved"], ids_of_state(state)
    needed = _needed(ids, state, base)
    task = Task(
        node="retriever",
        data={
            "job": job_row(state["job"]),
            "causes": cause_rows(state["findings"], ids, state["job"]),
            "recipes": recipe_rows(ids, retrieved.moves),
        },
        inputs=tuple(ids.real.values()),
        form=RetrieverAnswer,
        judge=lambda raw: _judge(raw, ids, state, needed),
    )
    answer = session.consult(task)
    if answer is not None:
        retrieved = _applied(retrieved, answer, base)
        update = {"queries": tuple(words for words, _ in answer.queries), "evidence": answer.judged}
        opinion = opinion.model_copy(update=update)
    return retrieved, session.account(opinion)


def _judge(
    raw: Mapping[str, Any], ids: Ids, state: State, needed: set[str]
) -> tuple[_Answer, list[Rejection]]:
    judged, rejected = _evidence(raw, ids, needed)
    queries, more = _queries(raw, ids, state)
    return _Answer(queries=queries, judged=judged), [*rejected, *more]


def _evidence(
    raw: Mapping[str, Any], ids: Ids, needed: set[str]
) -> tuple[tuple[Judged, ...], list[Rejection]]:
    gate = Gate(values=ids.values, real=ids.real, names=NAMES)
    found, wrong = items(raw, "evidence", EvidenceItem)
    rejected = [Rejection("not the form asked for", line) for line in wrong]
    most = len(ids.recipes) // 2
    kept: dict[str, Judged] = {}
    for item in found:
        ruling = gate.rule(item.reason)
        if item.recipe not in ids.recipes:
            rejected.append(Rejection("unknown id", item.recipe[:80]))
            continue
        if not ruling.stands:
            rejected.append(rejection_of(ruling, item.reason))
            continue
        aside = sum(not one.kept for one in kept.values())
        if not item.keep and (item.recipe in needed or aside >= most):
            why = "it treats a cause of this trace" if item.recipe in needed else "too many"
            rejected.append(Rejection("may not be set aside", f"{item.recipe}: {why}"))
            continue
        own = ids.recipes[item.recipe].recipe_id
        kept.setdefault(item.recipe, Judged(recipe_id=own, kept=item.keep, reason=ruling.text))
    return tuple(kept.values()), rejected


def _needed(ids: Ids, state: State, base: KnowledgeBase) -> set[str]:
    """Recipes that treat a cause of this trace."""
    job = state["job"]
    asked = query(state["findings"], job.workload, state["profile"], job.axes)
    return {
        name
        for name, item in ids.recipes.items()
        if matched(find_recipe(item.recipe_id, base.recipes), asked)
    }


def _queries(
    raw: Mapping[str, Any], ids: Ids, state: State
) -> tuple[tuple[tuple[str, Query], ...], list[Rejection]]:
    found, wrong = items(raw, "queries", QueryItem, MOST_QUERIES)
    rejected = [Rejection("not the form asked for", line) for line in wrong]
    job, kept = state["job"], []
    asked = query(state["findings"], job.workload, state["profile"], job.axes)
    for item in found:
        unknown = [name for name in item.causes if name not in ids.findings]
        words = "".join(c if c.isalpha() or c in " -" else " " for c in clean(item.words))
        words = " ".join(words.split())[:_LONGEST_QUERY]
        if unknown:
            rejected.append(Rejection("unknown id", unknown[0][:80]))
        elif not words:
            rejected.append(Rejection("empty", "a query"))
        else:
            kept.append((words, _asked(asked, item, words, ids)))
    return tuple(kept), rejected


def _asked(asked: Query, item: QueryItem, words: str, ids: Ids) -> Query:
    """The run's own question with other words; what applies to the job is asked as before."""
    kinds = dict.fromkeys(ids.findings[name].kind for name in item.causes)
    if asked.phase is None:  # the job is not known: no recipe but for what was found
        kinds = kinds or dict.fromkeys(asked.findings)
    else:
        kinds.pop(FindingKind.TRACE_TOO_POOR, None)
    axes = tuple(dict.fromkeys(item.axes))
    return asked.model_copy(update={"findings": tuple(kinds), "axes": axes, "text": words})


def _applied(retrieved: Retrieved, answer: _Answer, base: KnowledgeBase) -> Retrieved:
    """Evidence that was set aside stays listed, last, and is not cited."""
    aside = {item.recipe_id for item in answer.judged if not item.kept}
    added = _found(retrieved, answer, base)
    kept = [item for item in retrieved.evidence if item.recipe_id not in aside]
    dropped = [item for item in retrieved.evidence if item.recipe_id in aside]
    moves = {
        item.recipe_id: retrieved.moves[item.recipe_id]
        for item in kept
        if item.recipe_id in retrieved.moves
    }
    moves |= {item.recipe_id: moves_of(find_recipe(item.recipe_id, base.recipes)) for item in added}
    return retrieved.model_copy(update={"evidence": (*kept, *added, *dropped), "moves": moves})


def _found(retrieved: Retrieved, answer: _Answer, base: KnowledgeBase) -> list[Evidence]:
    known = {item.recipe_id for item in retrieved.evidence}
    added: list[Evidence] = []
    for words, asked in answer.queries:
        for item in base.retrieve(asked, k=MOST_FOUND):
            if item.recipe_id in known or len(added) == MOST_FOUND:
                continue
            known.add(item.recipe_id)
            why = f"found by the language model's question: {words}"
            added.append(item.model_copy(update={"reasons": (why, *item.reasons[1:])}))
    return added
