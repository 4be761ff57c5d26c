"""300 runs against a model that fails in forty ways: each ends with a valid report and the numbers
of a run without a model.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fault_server import FAULTS, INJECTION, fault_server
from pydantic import SecretStr

from prompts_agent.agents.graph import run_plan
from prompts_agent.agents.llm import client
from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.run_record import RunRecord
from prompts_agent.agents.llm.session import Session
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.emit.registry import with_configs
from prompts_agent.report.console.page import page_text
from prompts_agent.report.github import github_text
from prompts_agent.report.json_text import json_text
from prompts_agent.report.markdown import markdown_text
from prompts_agent.workload.yaml import load_workload

KEY = "sk-secret-0123456789"
JOBS = {
    "dense training": """
        model: llama3-8b
        hardware: v5e:4x4
        phase: pretrain
        global_batch: 64
        sequence: 4096
        baseline: {mesh: {fsdp: 4, tensor: 4}, remat: full, microbatch: 16}
        """,
    "two chips": """
        model: gemma-2b
        hardware: h100:1x2
        phase: pretrain
        global_batch: 8
        sequence: 2048
        """,
    "experts": """
        model: mixtral-8x7b
        hardware: v5p:2x2x4
        phase: pretrain
        global_batch: 64
        sequence: 4096
        """,
    "serving": """
        model: llama3-8b
        hardware: h100:1x8
        phase: decode
        global_batch: 64
        sequence: 2048
        """,
}
HANGING = ("timeout", "drip")
"""These take what time there is, so they get little."""
FORGED = ("prompt injection", "control characters")
"""What these say is looked for on the terminal too."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202e]")
STARTS = (0, 1)
"""Harmless calls before the fault."""
CASES = [(fault, job, start) for fault in FAULTS for job in JOBS for start in STARTS][:320]

_plain: dict[str, Report] = {}


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """The client's import takes seconds, which would be the first run's whole budget."""
    import langchain_openai  # noqa: F401


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_FIRST_PAUSE_S", 0.001)


def request(job: str, directory: Path) -> DiagnoseRequest:
    path = directory / "job.yaml"
    lines = [line.strip() for line in JOBS[job].strip().splitlines()]
    path.write_text("\n".join(["name: job", "source: made for this test", *lines]) + "\n")
    return DiagnoseRequest(workload=load_workload(path))


def without_model(job: str, directory: Path) -> Report:
    if job not in _plain:
        _plain[job] = with_configs(run_plan(request(job, directory)), None)
    return _plain[job]


def numbers(report: Report) -> Any:
    """Everything but sentences and the order of the proposals."""
    dumped = report.model_dump(mode="json")
    proposals = sorted(
        (
            {
                name: proposal[name]
                for name in ("layout", "predicted", "terms", "changes", "rung", "config")
            }
            for proposal in dumped["proposals"]
        ),
        key=repr,
    )
    kept = ("baseline", "findings", "search", "workload", "trace", "abstained", "rejected")
    return proposals, {name: dumped[name] for name in kept}


def check_valid(report: Report, plain: Report) -> None:
    """A whole report: it survives its own schema, every renderer, and shows nothing it must not."""
    assert numbers(report) == numbers(plain)
    text = json_text(report)
    assert Report.model_validate_json(text) == report
    assert [proposal.rank for proposal in report.proposals] == [1, 2, 3]
    assert all(proposal.reasons for proposal in report.proposals)
    for shown in (markdown_text(report), github_text(report)):
        assert not CONTROL.search(shown)
        assert "<script" not in shown
        assert "](http" not in shown
        assert "{fact:" not in shown
        assert "rm -rf" not in shown
    assert KEY not in text


@pytest.mark.parametrize(("fault", "job", "start"), CASES)
def test_the_report_is_as_good_as_without_a_model(
    fault: str, job: str, start: int, tmp_path: Path
) -> None:
    plain = without_model(job, tmp_path)
    record = tmp_path / "run.jsonl"
    with fault_server(fault, start) as server:
        config = LlmConfig(
            model="m",
            base_url=server.url,
            api_key=SecretStr(KEY),
            seconds=1.0 if fault in HANGING else 20.0,
            retries=1,
        )
        kept = RunRecord(record)
        kept.open()
        session = Session(config=config, record=kept)
        report = with_configs(run_plan(request(job, tmp_path), session=session), None)
        assert server.calls >= 1 or fault in HANGING
    check_valid(report, plain)
    if fault in FORGED:
        assert not CONTROL.search(page_text(report))
    assert report.opinion is not None
    assert KEY not in record.read_text()
    if start == 0 and "429" not in fault:
        told = (*report.opinion.failures, *report.opinion.refused)
        assert told or fault == "a hundred items"


def test_there_are_three_hundred_cases() -> None:
    assert len(CASES) >= 300
    assert len(FAULTS) == 40
    assert "\x1b" in INJECTION
