"""`prompts kb build` and `kb evaluate`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from recipe_build import make_recipe
from typer.testing import CliRunner

from prompts_agent.cli.app import app
from prompts_agent.knowledge.library import load_recipes
from prompts_agent.knowledge.recipe_text import add_recipe
from prompts_agent.knowledge.store import store_path

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


def test_a_teams_recipes_are_indexed_and_in_no_file_for_a_server(tmp_path: Path) -> None:
    team, cache = tmp_path / "team", tmp_path / "cache"
    recipe = make_recipe(id="our-secret", costs="Known to nobody else.")
    add_recipe(recipe, team)
    done = CliRunner().invoke(app, ["kb", "build", "--cache", str(cache), "--kb-path", str(team)])
    assert done.exit_code == 0, done.output
    served = Path(done.stdout.strip())
    assert store_path(load_recipes(), cache) == served
    own = store_path(load_recipes(extra=team), cache)
    assert sorted(path.name for path in own.iterdir()) == ["manifest.json", "vectors.npz"]
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert not any(b"Known to nobody" in path.read_bytes() for path in files)
    assert not any(b"our-secret" in p.read_bytes() for p in served.rglob("*") if p.is_file())


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
