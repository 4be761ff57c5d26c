"""Whatever JSON a model writes, the judges read it; what they let through is within bounds."""

from __future__ import annotations

from typing import Any

import pytest
from agents_build import exposed, profile, workload
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prompts_agent.agents import nodes
from prompts_agent.agents.llm import analyst, critic, planner, retriever
from prompts_agent.agents.llm.analyst import ids_of_state
from prompts_agent.agents.llm.session import Task, _judged
from prompts_agent.agents.llm.table import Table, table_of
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.agents.state import State

WORDS = st.sampled_from(
    ["p1", "p2", "p9", "cause1", "cause2", "r1", "r3", "tensor", "risk", "It waits.", "64",
     "{fact:step_time}", "{term:step_time}", "{layout:p2}", "raises the tensor axis", "", "full"]
)  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 80) | st.floats() | WORDS | st.text(max_size=9)
)
KEYS = st.sampled_from(
    ["cause", "text", "recipe", "keep", "reason", "words", "causes", "axes", "layout", "layouts",
     "support", "kind", "falsified_by", "send_back", "data", "fsdp", "tensor", "pipeline", "expert",
     "context", "microbatch", "gradient_accumulation", "remat"]
)  # fmt: skip
ITEMS = st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=3), max_size=12)
DEGREE = st.sampled_from([1, 1, 1, 2, 4, 8, 16, 3, 64, 1 << 20])
EXTRAS = st.fixed_dictionaries(
    dict.fromkeys(("data", "fsdp", "tensor", "pipeline", "expert", "context"), DEGREE)
    | {
        "microbatch": st.none() | DEGREE,
        "gradient_accumulation": st.none() | DEGREE,
        "remat": st.sampled_from([None, "none", "full", "offload"]),
        "reason": WORDS,
    }
)
ATTACKS = st.fixed_dictionaries(
    {
        "layout": WORDS,
        "kind": st.just("risk"),
        "text": WORDS,
        "falsified_by": WORDS,
        "send_back": st.booleans(),
    }
)
LISTS = st.lists(ITEMS | EXTRAS | ATTACKS | SCALARS, max_size=6) | SCALARS
REPLIES = st.fixed_dictionaries(
    {},
    optional={
        "story": LISTS,
        "capture_next": LISTS,
        "queries": LISTS,
        "evidence": LISTS,
        "order": ITEMS | SCALARS,
        "cases": LISTS,
        "extra": LISTS,
        "attacks": LISTS,
    },
)


@pytest.fixture(scope="module")
def state() -> State:
    made: State = {
        "request": DiagnoseRequest(workload=workload(), verify="none"),
        "profile": profile(collectives=(exposed(exposed_s=0.3),)),
    }
    for node in (nodes.read, nodes.analyst, nodes.recall, nodes.planner, nodes.critic):
        made = made | node(made)
    return made


@pytest.fixture(scope="module")
def table(state: State) -> Table:
    found = table_of(state)
    assert found is not None
    return found


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(reply=REPLIES)
def test_any_reply(reply: dict[str, Any], state: State, table: Table) -> None:
    ids = ids_of_state(state)
    analyst._judge(reply, ids)
    retriever._judge(reply, ids, state, set())
    answer, _ = planner._judge(reply, table)
    assert sorted(answer.places) == list(range(len(table.drafts)))
    assert len(answer.considered) <= 5
    for item in answer.considered:
        if item.verdict in ("ranks below", "ranks among"):
            assert item.layout is not None
            assert item.layout.devices == 16
    held, _ = critic._judge(reply, table)
    assert all(1 <= attack.rank <= len(table.drafts) for attack in held.attacks)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(extra=st.lists(EXTRAS, max_size=5))
def test_any_mesh(extra: list[dict[str, Any]], table: Table) -> None:
    found, _ = planner._extra({"extra": extra}, table)
    for item in found:
        assert (item.layout is None) == (item.verdict == "no layout")
        assert item.why
        if item.step_time_s is not None:
            assert item.layout is not None
            assert item.layout.devices == 16
            assert item.low_s is not None
            assert item.low_s <= item.step_time_s


def test_a_judge_that_trips_is_a_wrong_form() -> None:
    def trips(_raw: object) -> Any:
        raise KeyError("story")

    task: Task[Any] = Task(
        node="analyst", data={}, inputs=(), form=analyst.AnalystAnswer, judge=trips
    )
    kept, rejected = _judged(task, {})
    assert kept is None
    assert rejected[0].reason == "not the form asked for"
