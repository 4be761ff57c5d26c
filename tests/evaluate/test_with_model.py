"""The agents with a model beside the agents without, and the table of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_agents import Script

from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.session import Session
from prompts_agent.errors import OutputError
from prompts_agent.evaluate.with_model import (
    Case,
    Comparison,
    compare,
    comparison_lines,
    write_comparison,
)
from prompts_agent.workload.yaml import load_workload

CASES = Path(__file__).parents[2] / "workloads"
CONFIG = LlmConfig(model="scripted", base_url="http://127.0.0.1:9/v1")


def test_one_workload_both_ways() -> None:
    workload = load_workload(CASES / "prompts-case-1.yaml")
    found = compare([workload], CONFIG, session_of=lambda config: Session(config, asker=Script()))
    (case,) = found.cases
    assert case.same_numbers
    assert case.place_with == case.place_without
    assert not case.failures
    assert (case.faults_without, case.faults_with) == (0, 0)


def test_an_interrupt_keeps_what_is_done() -> None:
    workload = load_workload(CASES / "prompts-case-1.yaml")
    stop = {1: KeyboardInterrupt()}

    def on_case(done: int, _all: int) -> None:
        if done in stop:
            raise stop[done]

    found = compare(
        [workload, workload],
        CONFIG,
        on_case,
        session_of=lambda config: Session(config, asker=Script()),
    )
    assert len(found.cases) == 1
    assert found.interrupted
    stop[0] = stop[1]
    with pytest.raises(KeyboardInterrupt):
        compare([workload], CONFIG, on_case)


def case(**changes: object) -> Case:
    values = {
        "workload": "w",
        "place_without": 1,
        "place_with": 2,
        "seconds_without": 1.0,
        "seconds_with": 3.0,
        "calls": 4,
        "tokens": 5000,
        "reordered": True,
        "same_numbers": True,
        "faults_without": 0,
        "faults_with": 0,
        "refused": {"critic: unknown id": 2},
        "failures": (),
    }
    return Case.model_validate(values | changes)


def test_the_table() -> None:
    found = Comparison(
        model="m",
        endpoint="http://127.0.0.1:8080",
        cases=(
            case(),
            case(place_without=None, place_with=None, tokens=7000, calls=2, reordered=False),
            case(refused={"critic: unknown id": 1}, failures=("planner: timeout: too slow",)),
            case(place_with=1, place_without=3, faults_with=2),
        ),
    )
    lines = [line.split() for line in comparison_lines(found)]
    assert lines[2] == ["adopted", "first", "50", "%", "25", "%"]
    assert lines[3] == ["adopted", "among", "three", "75", "%", "75", "%"]
    assert lines[4] == ["seconds", "a", "case", "1.0", "3.0"]
    assert lines[5] == ["calls", "a", "case", "0.0", "3.5"]
    # (5000 × 3 + 7000) ÷ 4
    assert lines[6] == ["tokens", "a", "case", "0", "5,500"]
    assert lines[7] == ["prose", "without", "a", "fault", "100", "%", "75", "%"]
    assert comparison_lines(found)[8:] == [
        "the same numbers in 4 of 4, another order in 3",
        "turned away, critic: unknown id: 7",
        "no answer, timeout: 1",
    ]


def test_the_file(tmp_path: Path) -> None:
    found = Comparison(model="m", endpoint="http://127.0.0.1:8080", cases=(case(),))
    write_comparison(found, tmp_path / "new")
    text = (tmp_path / "new" / "with-model.json").read_text()
    assert Comparison.model_validate_json(text) == found
    (tmp_path / "taken").write_text("")
    with pytest.raises(OutputError):
        write_comparison(found, tmp_path / "taken")


def test_nothing_to_compare() -> None:
    found = Comparison(model="m", endpoint="e", cases=())
    assert comparison_lines(found) == [
        "No workload names an adopted layout: there is nothing to compare."
    ]
