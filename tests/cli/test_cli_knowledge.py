"""`prompts kb build` and `kb evaluate`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from prompts_agent.cli.app import app

REPO = Path(__file__).parents[2]
QUESTIONS = """
- id: q1
  part: tune
  source: by hand
  ask: {phase: pretrain, chip: v5e, architecture: [dense], findings: [input_bound]}
  wants: [input-bound-is-not-sharding]
"""


def test_the_hook_runs_a_command_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO)
    hooks = yaml.safe_load((REPO / ".pre-commit-hooks.yaml").read_text())
    (hook,) = [hook for hook in hooks if hook["id"] == "prompts-kb-check"]
    program, *command = [*hook["entry"].split(), *hook["args"]]
    assert program == "prompts"
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, done.stdout) == (0, "no fault: recipes in knowledge_base\n")


def test_the_index_is_built_once_and_its_place_printed(tmp_path: Path) -> None:
    first = CliRunner().invoke(app, ["kb", "build", "--cache", str(tmp_path)])
    assert first.exit_code == 0, first.output
    place = Path(first.stdout.strip())
    assert place.parent == tmp_path
    assert (place / "chroma").is_dir()
    again = CliRunner().invoke(app, ["kb", "build", "--cache", str(tmp_path)])
    assert again.stdout == first.stdout


def test_retrieval_is_scored_on_questions(tmp_path: Path) -> None:
    questions = tmp_path / "questions.yaml"
    questions.write_text(QUESTIONS)
    done = CliRunner().invoke(app, ["kb", "evaluate", str(questions)])
    assert done.exit_code == 0, done.output
    # One question, one wanted recipe, whose own finding is asked for: it comes first.
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("all") and "filter+fused" in x]
    assert line.split() == ["all", "1", "filter+fused", "1.000", "1.000", "1.000"]


def test_what_a_report_cites_can_be_read() -> None:
    for name in ("wrap-the-ring", "r:wrap-the-ring"):
        done = CliRunner().invoke(app, ["kb", "show", name])
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("---\nid: wrap-the-ring\n")
        assert "## Why it works" in done.stdout
    wrong = CliRunner().invoke(app, ["kb", "show", "wrap-the-rings"])
    assert wrong.exit_code == 2
    assert "wrap-the-ring" in wrong.stderr
