"""SARIF: the required structure, the line that holds each axis, and nothing of this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from golden_files import check_golden
from typer.testing import CliRunner

from prompts_agent import __version__
from prompts_agent.cli.app import app
from prompts_agent.report.sarif import Result, repository_path, sarif_text

ROOT = Path(__file__).parents[2]
CONFIG = """\
# our run
model_name: llama3.1-8b
per_device_batch_size: 4
max_target_length: 4096
ici_fsdp_parallelism: 2
ici_tensor_parallelism: {tensor}
remat_policy: full
"""
LEVELS = {"none", "note", "warning", "error"}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose config lies in a folder with a blank in its name; we stand elsewhere."""
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "our jobs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return root


def written(repository: Path, tensor: int) -> Path:
    path = repository / "our jobs" / "train.yml"
    path.write_text(CONFIG.format(tensor=tensor))
    return path


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.stdout


def checked(text: str) -> list[dict[str, Any]]:
    """The results, after the properties that the standard's schema requires and what
    code-scanning services document that they need.
    """
    log = json.loads(text)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run_of,) = log["runs"]
    driver = run_of["tool"]["driver"]
    assert driver["name"] == "prompts"
    rules = driver["rules"]
    ids = [rule["id"] for rule in rules]
    assert len(set(ids)) == len(ids)
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in LEVELS
    assert run_of["invocations"][0]["executionSuccessful"] is True
    fingerprints = set()
    for result in run_of["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in LEVELS
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uriBaseId"] in run_of["originalUriBaseIds"]
        uri = place["artifactLocation"]["uri"]
        assert re.fullmatch(r"[\w%.~-][\w%.~/-]*", uri, re.ASCII)
        assert place["region"]["startLine"] >= 1
        fingerprints.add((result["ruleId"], *result["partialFingerprints"].values()))
    assert len(fingerprints) == len(run_of["results"])
    return list(run_of["results"])


def line(result: dict[str, Any]) -> int:
    found: int = result["locations"][0]["physicalLocation"]["region"]["startLine"]
    return found


def test_the_log() -> None:
    results = [
        Result("lint-heads", "About heads.", "error", "32 heads ÷ tensor 3. Choose.", "Choose.",
               "jobs/train.yml", 6),
        Result("lint-heads", "About heads.", "error", "32 heads ÷ tensor 5. Choose.", "Choose.",
               "jobs/train.yml", 9),
        Result("plan-fsdp", "About fsdp.", "note", "see [this](http://evil.test) at /home/me/x.yml",
               "Look.", "a b/ö.yml", 0),
    ]  # fmt: skip
    text = sarif_text(results, [("jobs/train.yml", "heads: give --model")])
    assert [line(result) for result in checked(text)] == [6, 9, 1]
    assert "evil.test" not in text
    assert "/home/me" not in text
    check_golden("log.sarif", text.replace(f'"version": "{__version__}"', '"version": "VERSION"'))


def test_no_results_are_a_log_too() -> None:
    assert checked(sarif_text([])) == []


def test_lint_points_at_the_line_of_the_axis(repository: Path) -> None:
    # 32 heads are no multiple of 6; line 6 of the file holds tensor.
    path = written(repository, 6)
    code, text = run("lint", str(path), "-q", "--format", "sarif")
    assert code == 1
    (heads,) = [one for one in checked(text) if one["ruleId"] == "lint-heads"]
    assert line(heads) == 6
    assert heads["level"] == "error"
    assert heads["message"]["text"].startswith("32 heads ÷ tensor 6 leaves 2. ")
    assert str(repository) not in text
    assert "our%20jobs/train.yml" in text


def test_lint_of_a_clean_file(repository: Path) -> None:
    code, text = run("lint", str(written(repository, 8)), "--format", "sarif")
    assert code == 0
    assert checked(text) == []
    notes = json.loads(text)["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert "give --target" in notes[-1]["message"]["text"]


def test_a_fault_that_moves_down_keeps_its_fingerprint(repository: Path) -> None:
    path = written(repository, 6)
    before = checked(run("lint", str(path), "-q", "--format", "sarif")[1])
    path.write_text("# a line\n" + path.read_text())
    after = checked(run("lint", str(path), "-q", "--format", "sarif")[1])
    assert [line(one) + 1 for one in before] == [line(one) for one in after]
    assert [o["partialFingerprints"] for o in before] == [o["partialFingerprints"] for o in after]


def test_a_plan_points_at_each_line_that_it_changes(repository: Path) -> None:
    path = written(repository, 8)
    asked = ("plan", "--from-config", str(path), "--target", "v5e:4x4", "--verify", "none", "-q")
    code, text = run(*asked, "--format", "sarif")
    assert code == 0
    found = {one["ruleId"]: one for one in checked(text)}
    report = json.loads(run(*asked, "--format", "json")[1])
    changes = {c["what"]: c for c in report["proposals"][0]["changes"]}
    assert "tensor" in changes
    assert line(found["plan-tensor"]) == 6
    before, after = changes["tensor"]["before"], changes["tensor"]["after"]
    words = found["plan-tensor"]["message"]["text"]
    assert words.startswith(f"tensor {before} → {after}: ")
    assert "in place of ici_tensor_parallelism: 8" in words
    assert "today's throughput" in words
    assert {one["level"] for one in found.values()} == {"note"}
    assert str(repository) not in text
    if "fsdp" in changes:
        assert line(found["plan-fsdp"]) == 5


def test_a_diagnosis_points_at_the_config_too(repository: Path) -> None:
    path = written(repository, 4)
    trace = ROOT / "examples" / "cpu8-train.xplane.pb.gz"
    asked = ("diagnose", str(trace), "--target", "v5e:4x4", "--verify", "none", "-q")
    code, text = run(*asked, "--from-config", str(path), "--format", "sarif")
    assert code == 0
    assert checked(text)


def test_without_a_config_there_are_no_lines() -> None:
    done = CliRunner().invoke(app, ["plan", "--model", "llama3-8b", "--format", "sarif"])
    assert done.exit_code == 2
    assert "--from-config" in done.stderr


def test_a_file_outside_any_repository_is_named_from_here_or_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert repository_path(Path("a.yml")) == "a.yml"
    assert repository_path(tmp_path / "other" / "b.yml") == "b.yml"
