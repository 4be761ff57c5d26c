"""The analyst's model: puts causes in an order that explains, and says what to capture next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prompts_agent.agents import narrate
from prompts_agent.agents.llm.answers import AnalystAnswer, StoryItem, TextItem, items
from prompts_agent.agents.llm.gate import Gate, Ruling
from prompts_agent.agents.llm.ids import NAMES, Ids, ids_of
from prompts_agent.agents.llm.rows import cause_rows, job_row
from prompts_agent.agents.llm.session import Rejection, Session, Task
from prompts_agent.agents.opinion import Opinion, Said
from prompts_agent.agents.state import State

__all__ = ["analyst", "ids_of_state", "rejection_of", "said"]

MOST_STORY = 4
MOST_CAPTURES = 3


def analyst(state: State, session: Session) -> Opinion:
    """The opinion so far: a story, and what to capture. Without findings nothing is asked."""
    opinion = session.opinion()
    ids = ids_of_state(state)
    if not ids.findings:
        return opinion
    task = Task(
        node="analyst",
        data={
            "job": job_row(state["job"]),
            "facts": ids.fact_rows(),
            "causes": cause_rows(state["findings"], ids, state["job"]),
        },
        inputs=tuple(ids.real.values()),
        form=AnalystAnswer,
        judge=lambda raw: _judge(raw, ids),
    )
    update = session.consult(task)
    return session.account(opinion.model_copy(update=update or {}))


def ids_of_state(state: State) -> Ids:
    """The ids of everything that the state holds so far."""
    profile, retrieved = state.get("profile"), state.get("retrieved")
    facts = profile.facts if profile is not None else ()
    found = narrate.filled_findings(state["findings"], facts)
    return ids_of(facts, found, retrieved.evidence if retrieved is not None else ())


def _judge(raw: Mapping[str, Any], ids: Ids) -> tuple[dict[str, Any], list[Rejection]]:
    gate = Gate(values=ids.values, real=ids.real, names=NAMES)
    story, rejected = _story(raw, ids, gate)
    captures, wrong = items(raw, "capture_next", TextItem, MOST_CAPTURES)
    rejected += [Rejection("not the form asked for", line) for line in wrong]
    kept = []
    for item in captures:
        ruling = gate.rule(item.text)
        if ruling.stands:
            kept.append(said(ruling))
        else:
            rejected.append(rejection_of(ruling, item.text))
    return {"story": story, "capture_next": tuple(kept)}, rejected


def _story(
    raw: Mapping[str, Any], ids: Ids, gate: Gate
) -> tuple[tuple[Said, ...], list[Rejection]]:
    found, wrong = items(raw, "story", StoryItem, MOST_STORY)
    rejected = [Rejection("not the form asked for", line) for line in wrong]
    story: dict[str, Said] = {}
    for item in found:
        ruling = gate.rule(item.text)
        if item.cause not in ids.findings:
            rejected.append(Rejection("unknown id", item.cause[:80]))
        elif not ruling.stands:
            rejected.append(rejection_of(ruling, item.text))
        elif item.cause not in story:
            own = ids.findings[item.cause].id
            line = said(ruling)
            others = tuple(name for name in line.finding_ids if name != own)
            story[item.cause] = line.model_copy(update={"finding_ids": (own, *others)})
    return tuple(story.values()), rejected


def said(ruling: Ruling) -> Said:
    """A sentence that stands, with what it refers to."""
    by_kind: dict[str, list[str]] = {"cause": [], "fact": [], "recipe": []}
    for kind, name in ruling.ids:
        by_kind.setdefault(kind, []).append(name)
    return Said(
        text=ruling.text,
        finding_ids=tuple(by_kind["cause"]),
        fact_ids=tuple(by_kind["fact"]),
        recipe_ids=tuple(by_kind["recipe"]),
    )


def rejection_of(ruling: Ruling, text: str) -> Rejection:
    """A sentence that does not stand."""
    what = f"{ruling.detail} in: {text[:100]}" if ruling.detail else text[:100]
    return Rejection(ruling.reason or "empty", what)
