"""Commands through typer's runner, with the agents stood in for where only their answer counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from prompts_agent.agents import graph
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.cli.app import app
from prompts_agent.cli.run import exit_code_of_report
from prompts_agent.errors import TraceNotFoundError

STORED = Path(__file__).resolve().parents[1] / "report" / "golden" / "training.json"


@pytest.fixture
def report() -> Report:
    return Report.model_validate_json(STORED.read_bytes())


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="prompts")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch, report: Report) -> list[DiagnoseRequest]:
    """What the agents were asked; they answer with the stored report."""
    seen: list[DiagnoseRequest] = []

    def answer(request: DiagnoseRequest, progress: Any = None, session: Any = None) -> Report:
        if progress is not None:
            progress("read")
        seen.append(request)
        return report

    monkeypatch.setattr(graph, "run_diagnosis", answer)
    monkeypatch.setattr(graph, "run_plan", answer)
    return seen


def test_version() -> None:
    assert run("--version").stdout == "prompts 0.1.0\n"


def test_flags_reach_the_request(requests: list[DiagnoseRequest]) -> None:
    result = run(
        *("diagnose", "a.pb", "b.pb", "--top", "2", "--objective", "latency"),
        *("--target", "v5e:4x4", "--model", "llama3.1-8b", "--phase", "pretrain"),
        *("--batch", "64", "--sequence", "8192"),
    )
    assert result.exit_code == 0, result.output
    request = requests[0]
    assert request.paths == (Path("a.pb"), Path("b.pb"))
    assert (request.top, request.objective, request.target) == (2, "latency", "v5e:4x4")
    assert (request.model, request.phase) == ("llama3.1-8b", "pretrain")
    assert (request.global_batch, request.sequence) == (64, 8192)


@pytest.mark.usefixtures("requests")
def test_formats() -> None:
    assert "Where a step of 2.20 s goes" in run("diagnose", "a.pb").stdout
    found = Report.model_validate_json(run("diagnose", "a.pb", "-f", "json").stdout)
    assert found.proposals[1].config is not None
    assert run("diagnose", "a.pb", "-f", "markdown").stdout.startswith("### fsdp 16")


@pytest.mark.usefixtures("requests")
def test_framework_writes_the_configs() -> None:
    text = run("diagnose", "a.pb", "-f", "json", "--framework", "maxtext").stdout
    configs = [p["config"] for p in json.loads(text)["proposals"]]
    # The stored third one, data beside fsdp with ZeRO-1, is none that MaxText takes.
    assert [config and config["framework"] for config in configs] == ["maxtext", "maxtext", None]


@pytest.mark.usefixtures("requests")
def test_output_goes_to_the_file_alone(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    result = run("plan", "--model", "x", "-o", str(target))
    assert result.exit_code == 0
    assert result.stdout == ""
    Report.model_validate_json(target.read_bytes())


def test_bad_output_is_refused_before_any_work(
    tmp_path: Path, requests: list[DiagnoseRequest]
) -> None:
    target = tmp_path / "report.json"
    target.write_text("mine")
    result = run("diagnose", "a.pb", "-o", str(target))
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert requests == []


def test_progress_is_on_stderr_and_only_when_asked_for(requests: list[DiagnoseRequest]) -> None:
    assert run("diagnose", "a.pb").stderr == ""
    loud = run("diagnose", "a.pb", "-v")
    assert "reading and measuring" in loud.stderr
    assert "reading and measuring" not in loud.stdout
    assert requests[1].timings


def test_error_is_one_message_in_three_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_args: object) -> Report:
        raise TraceNotFoundError("a.pb\x1b[2J", rule="nothing is there", cure="Check the path.")

    monkeypatch.setattr(graph, "run_diagnosis", missing)
    result = run("diagnose", "a.pb")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        "error: a.pb\ufffd[2J\n  rule: nothing is there\n  cure: Check the path.\n"
    )


def test_defect_is_70_and_says_what_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object) -> Report:
        raise KeyError("axis")

    monkeypatch.setattr(graph, "run_diagnosis", broken)
    monkeypatch.delenv("PROMPTS_DEBUG", raising=False)
    result = run("diagnose", "a.pb")
    assert result.exit_code == 70
    assert "error: KeyError: 'axis'" in result.stderr
    assert "PROMPTS_DEBUG=1" in result.stderr
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("PROMPTS_DEBUG", "1")
    assert "Traceback" in run("diagnose", "a.pb").stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("nosuch",),
        ("diagnose",),
        ("diagnose", "a.pb", "--top", "0"),
        ("diagnose", "a.pb", "--top", "11"),
        ("diagnose", "a.pb", "--batch", "0"),
        ("diagnose", "a.pb", "--objective", "speed"),
        ("diagnose", "a.pb", "--format", "xml"),
        ("emit", "r.json", "--framework", "deepspeed"),
    ],
)
def test_usage_errors_are_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr


def test_exit_code_3_only_where_nothing_was_told(report: Report) -> None:
    golden = {
        "training": 0,
        "not_sharding": 0,
    }
    assert exit_code_of_report(report) == golden["training"]
    poor = report.findings[0].model_copy(update={"kind": "trace_too_poor"})
    silent = {"kind": "cannot_tell", "text": "t", "next_steps": ()}
    data = json.loads(report.model_dump_json()) | {"proposals": [], "abstained": silent}
    told = Report.model_validate(data)
    assert exit_code_of_report(told) == golden["not_sharding"]
    assert exit_code_of_report(told.model_copy(update={"findings": ()})) == 3
    only_poor = Report.model_validate(
        data | {"findings": [json.loads(poor.model_dump_json(warnings=False))]}
    )
    assert exit_code_of_report(only_poor) == 3


def test_emit_of_a_stored_report() -> None:
    result = run("emit", str(STORED), "--rank", "2", "--framework", "maxtext")
    assert result.exit_code == 0, result.output
    assert "ici_fsdp_parallelism: 8" in result.stdout
    assert "ici_tensor_parallelism: 2" in result.stdout
    assert "train_compile" in result.stderr
    # The stored config of rank 1 is for jax, and is kept.
    assert run("emit", str(STORED)).stdout.startswith("import jax")


def test_emit_refusals(tmp_path: Path) -> None:
    assert "its proposals are 1, 2, 3" in run("emit", str(STORED), "--rank", "9").stderr
    assert "vLLM on TPU serves" in run("emit", str(STORED), "--framework", "vllm").stderr
    bad = tmp_path / "bad.json"
    bad.write_text('{"tool_version": "0.1.0", "colour": 1}')
    result = run("emit", str(bad))
    assert result.exit_code == 2
    assert "colour" in result.stderr
    assert run("emit", str(tmp_path / "none.json")).exit_code == 2


def test_schema_is_json() -> None:
    assert json.loads(run("schema").stdout)["title"].startswith("prompts report")


def test_kb_check_of_a_broken_recipe(tmp_path: Path) -> None:
    (tmp_path / "broken.md").write_text("no front matter")
    result = run("kb", "check", str(tmp_path))
    assert result.exit_code == 2
    assert result.stdout.startswith("broken.md: ")
    assert "rule: " in result.stdout


def test_kb_and_workloads_that_come_with_the_package() -> None:
    assert run("kb", "check").exit_code == 0
    assert run("workloads", "check").exit_code == 0


def test_workloads_check_names_the_file(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("- a list\n")
    result = run("workloads", "check", str(bad))
    assert result.exit_code == 2
    assert "bad.yaml" in result.stdout
