"""The whole graph through a real server and a real model, too small to reason: whatever it says,
the report is whole and its numbers are those without it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from local_model import ABSENT, local_model
from typer.testing import CliRunner

from prompts_agent.agents.llm.numbers import numbers_of
from prompts_agent.agents.llm.run_record import CallLine, ReportLine, RunLine, read_record
from prompts_agent.agents.report import Report
from prompts_agent.cli.app import app
from prompts_agent.evaluate.rubric import faults
from prompts_agent.report.markdown import markdown_text

pytestmark = pytest.mark.skipif(ABSENT is not None, reason=str(ABSENT))

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "examples" / "cpu8-train.xplane.pb.gz"
JOBS = {
    "diagnose": ("diagnose", str(TRACE), "--target", "v5e:4x4", "--top", "2"),
    "plan": ("plan", str(ROOT / "workloads" / "example-llama3-8b-v5e.yaml"), "--top", "1"),
}
PROPOSALS = {"diagnose": 2, "plan": 1}  # few, because a prompt takes its time without a GPU
REPLY_TOKENS = 120
AGENTS = {
    "diagnose": {"analyst", "retriever", "planner", "critic"},
    "plan": {"retriever", "planner", "critic"},  # without a trace there is no cause to order
}


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--verify", "none", "-q", "-f", "json"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_whole_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PROMPTS_LLM_SECONDS", "1200")
    monkeypatch.setenv("PROMPTS_LLM_REPLY_TOKENS", str(REPLY_TOKENS))
    # In one test, so that workers that share the tests do not start a server each.
    with local_model(tmp_path) as server:
        for command in JOBS:
            check_run(command, server, tmp_path / f"{command}.jsonl")


def check_run(command: str, server: str, record: Path) -> None:
    asked = run(
        *JOBS[command], "--llm", "gemma-3-270m", "--llm-base-url", server, "--record", str(record)
    )
    plain = Report.model_validate_json(run(*JOBS[command], "--no-llm"))
    report = Report.model_validate_json(asked)
    check_record(command, record, report)
    assert numbers_of(report) == numbers_of(plain)
    assert len(report.proposals) == PROPOSALS[command]
    assert all(item.config is not None and item.reasons for item in report.proposals)
    assert faults(report) == ()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", markdown_text(report))
    replayed = CliRunner().invoke(app, ["replay", str(record), "-f", "json"])
    assert replayed.exit_code == 0, replayed.output
    assert json.loads(replayed.stdout) == json.loads(asked)


def check_record(command: str, record: Path, report: Report) -> None:
    """Every agent got replies from the server, which counted tokens; the run ends with a report."""
    lines = read_record(record)
    calls = [line for line in lines if isinstance(line, CallLine)]
    assert {line.node for line in calls} == AGENTS[command]
    for line in calls:
        assert line.failure is None
        assert line.raw
        assert line.mode == "json_schema"
        assert line.input_tokens > 100
        assert 0 < line.output_tokens <= REPLY_TOKENS
        assert not line.tokens_estimated
        assert line.latency_s > 0
        assert line.raw.lstrip().startswith("{")
    assert isinstance(lines[0], RunLine)
    assert isinstance(lines[-1], ReportLine)
    assert report.opinion is not None
    spent = report.opinion.spent
    assert spent.calls == len(calls)
    assert spent.input_tokens == sum(line.input_tokens for line in calls)
    assert spent.output_tokens == sum(line.output_tokens for line in calls)
    assert spent.stopped is None
    assert report.opinion.failures == ()
