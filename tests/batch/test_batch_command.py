"""`prompts batch` as a user runs it: real diagnoses, a pipe, Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from batch_build import comparable
from typer.testing import CliRunner

from prompts_agent.agents.graph import run_diagnosis
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.batch.journal import rows_in
from prompts_agent.batch.store import report_path
from prompts_agent.cli.app import app
from prompts_agent.report.json_text import json_text

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "cpu8-train.xplane.pb.gz"
PROMPTS = (sys.executable, "-m", "prompts_agent", "batch")


def prompts(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROMPTS, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def traces(directory: Path, count: int) -> Path:
    directory.mkdir()
    for number in range(count):
        shutil.copyfile(EXAMPLE, directory / f"job-{number}.xplane.pb.gz")
    return directory


def test_a_batch_its_reports_and_its_tables(tmp_path: Path) -> None:
    source, out = traces(tmp_path / "in", 2), tmp_path / "out"
    (source / "cut.xplane.pb.gz").write_bytes(EXAMPLE.read_bytes()[:2000])
    (source / "README.md").write_text("no trace")
    done = prompts(source, "-o", out, "--target", "v5e:4x4", "-j", "2")
    assert (done.returncode, done.stdout) == (0, "")
    assert "1 file is no trace: 1 .md" in done.stderr
    assert "3 of 3 rows: 2 diagnosed, 0 cannot tell, 1 failed: 1 DamagedTraceError" in done.stderr
    alone = subprocess.run(
        [*PROMPTS[:3], "diagnose", source / "job-0.xplane.pb.gz", "--target", "v5e:4x4", "-f",
         "json", "-q", "--verify", "none"],
        capture_output=True, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    row = next(row for row in rows_in(out).values() if "job-0" in row.item.address)
    assert row.report is not None
    assert report_path(out, row.report).read_bytes() == alone.stdout
    assert row.answer is not None
    assert row.answer.trace_sha256 == json.loads(alone.stdout)["trace"]["sha256"]
    pytest.importorskip("duckdb")
    query = "select status, count(*) as n from jobs group by 1 order by 1"
    assert prompts("sql", out, query, "-f", "csv").stdout == "status,n\nbad_input,1\ndone,2\n"
    said = prompts("report", out)
    assert "Which jobs gain most from one change" in said.stdout
    again = prompts(source, "-o", out, "--target", "v5e:4x4")
    assert "3 of 3 are done already" in again.stderr


def test_ctrl_c_finishes_what_runs_and_the_same_command_goes_on(tmp_path: Path) -> None:
    source, out = traces(tmp_path / "in", 8), tmp_path / "out"
    command = [*PROMPTS, str(source), "-o", str(out), "-j", "1"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    deadline_s = time.monotonic() + 60
    while not rows_in(out) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finishing what runs; once more to stop at once" in said
    assert "interrupted; the same command goes on from here" in said
    kept = len(rows_in(out))
    assert 1 <= kept < 8
    assert prompts(source, "-o", out, "-j", "2").returncode == 0
    assert len(comparable(out)) == 8


@pytest.mark.real_traces
def test_real_traces_are_diagnosed_as_they_are_one_by_one(
    real_traces: Path, tmp_path: Path
) -> None:
    names = ["gpu-mi300x-jax-attention", "gpu-mi300x-jax-gemm", "tpu-text-mangled"]
    paths = [real_traces / f"{name}.xplane.pb" for name in names]
    assert prompts(*paths, "-o", tmp_path, "-j", "2").returncode == 0
    found = {row.item.address: row for row in rows_in(tmp_path).values()}
    assert [found[str(path)].status for path in paths] == ["done", "done", "bad_input"]
    for path in paths[:2]:
        report = found[str(path)].report
        assert report is not None
        alone = run_diagnosis(DiagnoseRequest(paths=(path,)))
        assert report_path(tmp_path, report).read_text("utf-8") == json_text(alone)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none", "-o", "out"), "error: none"),
        (("empty", "-o", "out"), "there is no trace"),
        (("x.pb", "-o", "out", "--memory", "much"), "size 'much'"),
        (("x.pb", "-o", "out", "--shard", "0/3"), "--shard 0/3"),
        (("report", "."), "it holds no batch"),
        (("sql", ".", "select 1"), "it holds no batch"),
        (("merge", ".", "-o", "out"), "it holds no batch"),
        (("report", ".", "--since", "yesterday"), "--since yesterday"),
    ],
)
def test_wrong_input(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pb").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    result = CliRunner().invoke(app, ["batch", *arguments], prog_name="prompts")
    assert result.exit_code == 2
    assert said in result.output


def test_run_need_not_be_named() -> None:
    for arguments in (["batch", "run", "--help"], ["batch", "-q", "--help"]):
        result = CliRunner().invoke(app, arguments, prog_name="prompts")
        assert "Diagnose many traces" in result.output
    result = CliRunner().invoke(app, ["batch", "--help"], prog_name="prompts")
    for command in ("run", "report", "sql", "merge"):
        assert f"  {command} " in result.output
