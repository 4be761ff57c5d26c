"""`prompts compare` and `prompts kb add`: from two traces to what the next diagnosis cites."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compare_build import write_trace
from typer.testing import CliRunner, Result

from prompts_agent.cli.app import app

REPO = Path(__file__).parents[2]
EXAMPLE = REPO / "examples" / "cpu8-train.xplane.pb.gz"


def prompts(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def traces(tmp_path: Path) -> tuple[Path, Path]:
    """1000 µs a step over data 2 × tensor 4, then 800 over data 4 × tensor 2."""
    before = write_trace(tmp_path / "before.xplane.pb")
    return before, write_trace(tmp_path / "after.xplane.pb", data=4, model=2, reduce=100.0)


@pytest.fixture(autouse=True)
def _no_team(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PROMPTS_KB", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_three_formats(traces: tuple[Path, Path], tmp_path: Path) -> None:
    text = prompts("compare", *traces)
    assert text.exit_code == 0, text.output
    assert "Faster: 1.00 ms → 800 µs a step, 1.25× the throughput" in text.stdout
    data = json.loads(prompts("compare", *traces, "-f", "json").stdout)
    assert (data["direction"], data["gain"]) == ("faster", pytest.approx(1.25))
    file = tmp_path / "out.md"
    done = prompts("compare", *traces, "-o", file)
    assert (done.exit_code, done.stdout) == (0, "")
    assert file.read_text().startswith("### Faster")
    again = prompts("compare", *traces, "-o", file)
    assert again.exit_code == 2


def test_wrong_input_is_said(traces: tuple[Path, Path], tmp_path: Path) -> None:
    gone = prompts("compare", traces[0], tmp_path / "gone")
    assert gone.exit_code == 2
    rank = prompts("compare", *traces, "--rank", "1")
    assert rank.exit_code == 2
    assert "Add --proposal FILE." in rank.stderr
    silent = prompts("compare", traces[0], EXAMPLE)
    assert silent.exit_code == 3
    assert "AFTER: its devices are virtual" in silent.stderr
    (tmp_path / "no.json").write_text("{}")
    report = prompts("compare", *traces, "--proposal", tmp_path / "no.json")
    assert report.exit_code == 2
    assert "is no report" in report.stderr


def test_a_stored_report_stands_for_its_trace(traces: tuple[Path, Path], tmp_path: Path) -> None:
    stored = tmp_path / "before.json"
    assert prompts("diagnose", traces[0], "-o", stored).exit_code == 0
    direct = prompts("compare", *traces, "-f", "json")
    assert prompts("compare", stored, traces[1], "-f", "json").stdout == direct.stdout
    plan = tmp_path / "plan.json"
    flags = ("--model", "llama3.1-8b", "--target", "v5e:4x4", "--batch", "32", "--sequence", "2048")
    assert prompts("plan", *flags, "-o", plan).exit_code == 0
    silent = prompts("compare", plan, traces[1])
    assert silent.exit_code == 2
    assert "nothing was measured" in silent.stderr


def test_it_learns(traces: tuple[Path, Path], tmp_path: Path) -> None:
    """Diagnose, follow a proposal, measure, add; the next diagnosis cites it as measured here."""
    before, after = traces
    report, team = tmp_path / "report.json", tmp_path / "team"
    assert prompts("diagnose", before, "--top", "10", "-o", report).exit_code == 0
    planned = json.loads(report.read_text())
    assert not any(item["source"] == "measured here" for item in planned["evidence"])
    followed = ("--proposal", report)
    compared = prompts("compare", before, after, *followed)
    assert compared.exit_code == 0, compared.output
    assert ": data 4 × tensor 2\n" in compared.stdout
    assert "measured 1.25×" in compared.stdout

    refused = prompts("kb", "add", "--from", before, after, *followed, "--kb-path", team)
    assert refused.exit_code == 2
    assert "no terminal" in refused.stderr
    assert "gave 1.25×, measured here" in refused.stdout  # shown all the same
    assert not team.exists()

    added = prompts("kb", "add", "--from", before, after, *followed, "--kb-path", team, "--yes")
    assert added.exit_code == 0, added.output
    (path,) = team.iterdir()
    assert added.stdout.endswith(f"written: {path}\n")
    assert prompts("kb", "check", team).exit_code == 0

    again = prompts("kb", "add", "--from", before, after, "--kb-path", team, "--yes")
    assert again.exit_code == 2
    assert "is there already" in again.stderr

    following = json.loads(
        prompts("diagnose", before, "--kb-path", team, "--format", "json").stdout
    )
    first = following["evidence"][0]
    assert (first["recipe_id"], first["source"]) == (path.stem, "measured here")
    page = prompts("diagnose", before, "--kb-path", team).stdout
    assert "measured here" in page
    assert path.stem in page


def test_a_team_folder_that_is_not_there_is_said(traces: tuple[Path, Path], tmp_path: Path) -> None:
    flags = ["--model", "llama3.1-8b", "--target", "v5e:4x4", "--batch", "32", "--sequence", "2048"]
    for command in (("diagnose", traces[0]), ("plan", *flags), ("kb", "build")):
        done = prompts(*command, "--kb-path", tmp_path / "gone")
        assert done.exit_code == 2
        assert "is not a directory" in done.stderr


def test_a_server_that_is_down_is_said(traces: tuple[Path, Path]) -> None:
    done = prompts("diagnose", traces[0], "--kb", "http://127.0.0.1:9")
    assert done.exit_code == 2
    assert "no server answers there" in done.stderr
    odd = prompts("diagnose", traces[0], "--kb", "localhost:8000")
    assert odd.exit_code == 2
    assert "http://host:port" in odd.stderr


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
@pytest.mark.parametrize(("answer", "written"), [("y", 1), ("n", 0)])
def test_a_person_is_asked(
    traces: tuple[Path, Path], tmp_path: Path, answer: str, written: int
) -> None:
    team = tmp_path / "team"
    team.mkdir()
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "prompts_agent", "kb", "add", "--from", *map(str, traces),
               "--kb-path", str(team)]  # fmt: skip
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(REPO)}
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        out, err = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, err
    assert b"measured here" in out
    assert b"Write " in err
    assert len(list(team.iterdir())) == written
