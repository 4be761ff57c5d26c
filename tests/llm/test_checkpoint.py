"""Every value of a state comes back equal from a checkpoint, and nothing else is built from one."""

from __future__ import annotations

import pytest
from agents_build import workload

from prompts_agent.agents import nodes
from prompts_agent.agents.llm.checkpoint import StateSerializer
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.agents.state import State


@pytest.fixture(scope="module")
def state() -> State:
    made: State = {"request": DiagnoseRequest(workload=workload(), verify="none")}
    for node in (
        nodes.read,
        nodes.analyst,
        nodes.recall,
        nodes.planner,
        nodes.critic,
        nodes.report,
    ):
        made = made | node(made)
    return made


def test_a_state_comes_back_equal(state: State) -> None:
    serializer = StateSerializer()
    for name, value in state.items():
        assert serializer.loads_typed(serializer.dumps_typed(value)) == value, name
    whole = {"channel_values": dict(state), "v": 4}
    assert serializer.loads_typed(serializer.dumps_typed(whole)) == whole


def test_a_file_that_names_another_type_builds_nothing() -> None:
    serializer = StateSerializer()
    forged = serializer.dumps_typed({"prompts": "Popen", "json": '["ls"]'})
    with pytest.raises(KeyError):
        serializer.loads_typed(forged)
