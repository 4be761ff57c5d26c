"""`prompts diagnose --llm` as a user runs it: what is sent, kept, shown again, and never shown."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import scripted_model
from agents_build import workload
from scripted_server import Body, completion, error, scripted_server
from test_agents import Script
from typer.testing import CliRunner, Result

from prompts_agent.agents.graph import run_plan
from prompts_agent.agents.llm.client import Question, Reply
from prompts_agent.agents.llm.config import LlmConfig
from prompts_agent.agents.llm.dry_run import DryRun
from prompts_agent.agents.llm.run_record import CallLine, ReportLine, RunLine, read_record
from prompts_agent.agents.llm.session import Session
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.cli.app import app

TRACE = Path(__file__).parents[2] / "examples" / "cpu8-train.xplane.pb.gz"
DIAGNOSE = ("diagnose", str(TRACE), "--target", "v5e:4x4", "--verify", "none")
KEY = "sk-test-0123456789abcdef0123456789"


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Records and checkpoints go here; no settings file lies above."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "state" / "prompts"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="prompts")


def test_a_dry_run_shows_what_is_sent_and_sends_nothing() -> None:
    with scripted_server(scripted_model.answer) as server:
        llm = ("--llm", "scripted", "--llm-base-url", server.url)
        dry = run(*DIAGNOSE, *llm, "--llm-dry-run")
        assert dry.exit_code == 0, dry.output
        assert server.requests == []
        done = run(*DIAGNOSE, *llm, "-f", "json")
    assert done.exit_code == 0, done.output
    first = server.requests[0]
    for message in first["messages"]:
        assert message["content"].rstrip("\n") in dry.stdout
    head = {name: value for name, value in first.items() if name != "messages"}
    shown = [json.loads(line) for line in dry.stdout.splitlines() if line.startswith('{"model"')]
    assert shown[0] == head
    assert len(shown) == 4
    assert dry.stdout.count(f"POST {server.url}/chat/completions (no key)") == 4


def test_a_dry_run_keeps_the_very_body_that_a_request_has() -> None:
    config = LlmConfig(model="scripted", base_url="http://127.0.0.1:9/v1")
    dry = DryRun(config)
    request = DiagnoseRequest(workload=workload(), verify="none")
    run_plan(request, None, Session(config, asker=dry))
    with scripted_server(lambda _request: error(500)) as server:
        other = config.model_copy(update={"base_url": server.url, "retries": 0})
        run_plan(request, None, Session(other))
    assert server.requests[0] == dry.bodies[0]


def test_a_record_is_written_and_replayed(state: Path) -> None:
    with scripted_server(scripted_model.answer) as server:
        done = run(*DIAGNOSE, "--llm", "scripted", "--llm-base-url", server.url)
    assert done.exit_code == 0, done.output
    (path,) = (state / "runs").iterdir()
    assert f"record: {path}" in done.stderr.replace("\n", "")
    assert path.stat().st_mode & 0o777 == 0o600
    lines = read_record(path)
    assert isinstance(lines[0], RunLine)
    assert isinstance(lines[-1], ReportLine)
    calls = [line for line in lines if isinstance(line, CallLine)]
    assert [line.node for line in calls] == ["analyst", "retriever", "planner", "critic"]
    assert calls[0].template == "analyst@1"
    assert len(calls[0].prompt_sha256) == 64
    assert "fact:derived.kv_heads" not in calls[0].inputs
    assert "derived.kv_heads" in calls[0].inputs
    assert (calls[0].input_tokens, calls[0].output_tokens) == (100, 20)
    assert json.loads(calls[0].raw or "")["story"]
    replayed = run("replay", str(path))
    assert replayed.exit_code == 0, replayed.output
    assert replayed.stdout == done.stdout
    assert list((state / "checkpoints").iterdir()) == []


def test_a_record_is_never_overwritten(tmp_path: Path) -> None:
    kept = tmp_path / "run.jsonl"
    kept.write_text("mine\n")
    done = run(*DIAGNOSE, "--llm", "m", "--record", str(kept))
    assert done.exit_code == 2
    assert "never overwritten" in done.stderr
    assert kept.read_text() == "mine\n"


def test_the_record_of_an_interrupted_run_goes_on_with_resume(tmp_path: Path) -> None:
    kept = tmp_path / "run.jsonl"
    asked = (*DIAGNOSE, "--llm", "scripted", "--record", str(kept))
    with scripted_server(scripted_model.answer) as server:
        at = ("--llm-base-url", server.url)
        assert run(*asked, *at).exit_code == 0
        # As a kill would leave it: no report, and half a line at the end.
        whole = kept.read_text().splitlines(keepends=True)
        kept.write_text("".join(whole[:-1]) + whole[-1][:40])
        assert run(*asked, *at).exit_code == 2
        done = run(*asked, *at, "--resume")
    assert done.exit_code == 0, done.output
    lines = read_record(kept)
    assert isinstance(lines[-1], ReportLine)
    assert len(lines) > len(whole)
    assert run("replay", str(kept)).stdout == done.stdout


@pytest.mark.parametrize("flag", [("--llm-dry-run",), ("--resume",), ("--record", "a.jsonl")])
def test_flags_that_need_a_model(flag: tuple[str, ...]) -> None:
    done = run(*DIAGNOSE, *flag)
    assert done.exit_code == 2
    assert "none is configured" in done.stderr


def test_no_llm_wins(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    monkeypatch.setenv("PROMPTS_LLM_MODEL", "m")
    done = run(*DIAGNOSE, "--no-llm", "--llm", "other", "-f", "json")
    assert done.exit_code == 0, done.output
    assert Report.model_validate_json(done.stdout).opinion is None
    assert not state.exists()


@pytest.mark.parametrize("text", ["", "mine\n", '{"kind": "run"}\n', "\x00\x01"])
def test_a_file_that_is_no_record(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    done = run("replay", str(path))
    assert done.exit_code == 2
    assert "Traceback" not in done.output


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "PROMPTS_LLM_API_KEY"])
def test_keys_are_nowhere(
    variable: str, monkeypatch: pytest.MonkeyPatch, state: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("PROMPTS_DEBUG", "1")

    def answer(request: Body) -> Any:
        if "analyst" in request["messages"][0]["content"][:20]:
            return completion(f'{{"story": [], "capture_next": [{{"text": "Key {KEY}"}}]}}')
        return error(401, f"Incorrect API key provided: {KEY}")

    with scripted_server(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for extra in ((), ("-f", "json"), ("-f", "markdown"), ("--llm-dry-run",), ("-v",)):
            done = run(*DIAGNOSE, "--llm", "m", *extra)
            assert done.exit_code == 0, done.output
            assert KEY not in done.output
            assert KEY[:12] not in done.output
    assert any(header["authorization"] == f"Bearer {KEY}" for header in server.headers)
    records = list((state / "runs").iterdir())
    assert len(records) == 4
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes()
    failures = [line.failure for line in read_record(records[0]) if isinstance(line, CallLine)]
    assert any("[key]" in failure for failure in failures if failure)


class Interrupted(Script):
    """The user presses Ctrl-C while one agent waits for the model."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node

    def ask(self, question: Question) -> Reply:
        if question.node == self._node:
            raise KeyboardInterrupt
        return super().ask(question)


def test_an_interrupted_run_resumes_where_it_was(state: Path) -> None:
    config = LlmConfig(model="m", base_url="http://127.0.0.1:9/v1")
    request = DiagnoseRequest(workload=workload(), verify="none")
    whole = Script()
    expected = run_plan(request, None, Session(config, asker=whole))
    first = Session(config, asker=Interrupted("critic"), keeps_checkpoints=True)
    with pytest.raises(KeyboardInterrupt):
        run_plan(request, None, first)
    assert len(list((state / "checkpoints").iterdir())) == 1
    script = Script()
    second = Session(config, asker=script, keeps_checkpoints=True, resumes=True)
    report = run_plan(request, None, second)
    assert [question.node for question in script.questions] == ["critic"]
    assert second.notes == ["resumed before: attack"]
    assert report == expected
    assert list((state / "checkpoints").iterdir()) == []


def test_nothing_to_resume_starts_anew() -> None:
    config = LlmConfig(model="m", base_url="http://127.0.0.1:9/v1")
    request = DiagnoseRequest(workload=workload(), verify="none")
    script = Script()
    session = Session(config, asker=script, keeps_checkpoints=True, resumes=True)
    run_plan(request, None, session)
    assert session.notes == ["nothing to resume: this run starts anew"]
    assert len(script.questions) == 3


def test_a_damaged_checkpoint_costs_the_resume_and_not_the_run(state: Path) -> None:
    config = LlmConfig(model="m", base_url="http://127.0.0.1:9/v1")
    request = DiagnoseRequest(workload=workload(), verify="none")
    with pytest.raises(KeyboardInterrupt):
        run_plan(
            request, None, Session(config, asker=Interrupted("planner"), keeps_checkpoints=True)
        )
    (path,) = (state / "checkpoints").iterdir()
    path.write_bytes(b"not a database, whatever its name says" * 100)
    session = Session(config, asker=Script(), keeps_checkpoints=True, resumes=True)
    report = run_plan(request, None, session)
    assert report.opinion is not None
    assert session.notes[0].startswith("no checkpoint is kept: DatabaseError")


def test_a_disk_that_fills_up_costs_the_checkpoint_and_not_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from langgraph.checkpoint.sqlite import SqliteSaver

    def full(*_arguments: object, **_named: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(SqliteSaver, "put", full)
    monkeypatch.setattr(SqliteSaver, "put_writes", full)
    config = LlmConfig(model="m", base_url="http://127.0.0.1:9/v1")
    request = DiagnoseRequest(workload=workload(), verify="none")
    session = Session(config, asker=Script(), keeps_checkpoints=True)
    assert run_plan(request, None, session).opinion is not None


PROBE = """
import sys
sys.argv = ["prompts", "diagnose", sys.argv[1], "--target", "v5e:4x4", "-q"]
from prompts_agent.cli.main import main
try:
    main()
except SystemExit:
    print("loaded:", *(n for n in ("langchain_openai", "openai", "tiktoken",
          "langgraph.checkpoint.sqlite", "prompts_agent.agents.llm.client") if n in sys.modules))
"""


def test_without_a_model_its_client_is_not_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(TRACE)], capture_output=True, text=True, check=True
    )
    assert done.stdout.rsplit("loaded:", 1)[1].split() == []


def test_spans_hold_counts_and_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from prompts_agent.agents.llm import spans

    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(spans, "_tracer", lambda: provider.get_tracer("prompts"))
    config = LlmConfig(model="m", base_url="http://127.0.0.1:9/v1")
    run_plan(
        DiagnoseRequest(workload=workload(), verify="none"), None, Session(config, asker=Script())
    )
    found = [dict(span.attributes or {}) for span in kept.get_finished_spans()]
    assert [one["gen_ai.agent.name"] for one in found] == ["retriever", "planner", "critic"]
    assert found[0] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.seed": 0,
        "gen_ai.agent.name": "retriever",
        "gen_ai.workflow.name": "prompts",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
    }


def test_there_are_no_spans_unless_asked_for() -> None:
    assert not Session(LlmConfig(model="m")).traces


def test_spans_that_cannot_be_exported_are_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTS_OTEL", "1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with scripted_server(scripted_model.answer) as server:
        done = run(*DIAGNOSE, "--llm", "m", "--llm-base-url", server.url)
    assert done.exit_code == 0, done.output
    assert "no spans are exported" in done.stderr
