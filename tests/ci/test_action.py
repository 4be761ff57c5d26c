"""The composite action, step by step, as a push, a pull request and a fork would run it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from action_build import ACTION, Run
from ci_build import TOKEN, FakeGitHub, fake_github
from git_build import git

JOB = """\
name: job
source: made for this test
model: llama3-8b
hardware: v5e:4x4
phase: pretrain
global_batch: 64
sequence: 4096
baseline: {mesh: {fsdp: 16}, remat: full, microbatch: 4}
"""


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with fake_github() as served:
        yield served


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository whose pull request cuts the model over tensor 8."""
    path = tmp_path / "repository with a space"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / "job.yaml").write_text(JOB)
    git(path, "add", "."), git(path, "commit", "-qm", "one")
    git(path, "checkout", "-qb", "work")
    slower = JOB.replace("fsdp: 16", "fsdp: 2, tensor: 8").replace(
        "microbatch: 4", "microbatch: 4, gradient_accumulation: 8"
    )
    (path / "job.yaml").write_text(slower)
    git(path, "commit", "-qam", "two")
    return path


def started(
    tmp_path: Path, workspace: Path, hub: FakeGitHub, *, origin: str = "o/r", **inputs: str
) -> Run:
    temp = tmp_path / "runner temp"
    temp.mkdir()
    payload: dict[str, Any] = {
        "pull_request": {
            "number": 7,
            "head": {"sha": git(workspace, "rev-parse", "work"), "repo": {"full_name": origin}},
            "base": {
                "sha": git(workspace, "rev-parse", "main"),
                "repo": {"full_name": "o/r"},
            },
        }
    }
    event = temp / "event.json"
    event.write_text(json.dumps(payload))
    variables = {
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_API_URL": hub.url,
        "GITHUB_SHA": "d" * 40,
    }
    return Run(workspace, temp, {"workload": "job.yaml", "token": TOKEN, **inputs}, variables)


def test_a_pull_request_is_advised_commented_and_gated(
    tmp_path: Path, workspace: Path, hub: FakeGitHub
) -> None:
    inputs = {"comment": "true", "fail-on": "regression,oom"}
    run = started(tmp_path, workspace, hub, **inputs)
    assert run.go() == 1, run.log
    assert run.ran == ["What changed", "Advise", "Comment", "Gate"]
    assert "oom: passed" in run.log
    assert re.search(r"regression: failed: predicted .* before ", run.log)
    assert run.outputs["gate"] == {"verdict": "failed"}
    head = git(workspace, "rev-parse", "work")
    assert f"`{head[:12]}`" in run.summary
    assert list(hub.comments.values()) == [run.summary]
    assert json.loads(Path(run.outputs["advise"]["report"]).read_bytes())["proposals"]
    assert TOKEN not in run.log + run.summary


def test_a_fork_gets_the_summary_and_no_comment(
    tmp_path: Path, workspace: Path, hub: FakeGitHub
) -> None:
    run = started(tmp_path, workspace, hub, origin="mallory/r", comment="true")
    assert run.go() == 0, run.log
    assert run.ran == ["What changed", "Advise"]
    assert run.summary.startswith("<!-- prompts:sharding -->\n\n### ")
    assert hub.requests == []


def test_nothing_runs_where_nothing_watched_changed(
    tmp_path: Path, workspace: Path, hub: FakeGitHub
) -> None:
    run = started(tmp_path, workspace, hub, watch="configs/*\n*.toml", **{"fail-on": "oom"})
    assert run.go() == 0, run.log
    assert run.ran == ["What changed"]
    assert run.outputs["changed"]["changed"] == "false"
    assert run.summary == ""


def test_a_push_to_a_new_branch_has_nothing_before_it(
    tmp_path: Path, workspace: Path, hub: FakeGitHub
) -> None:
    run = started(tmp_path, workspace, hub, comment="true", **{"fail-on": "regression"})
    run.event["GITHUB_EVENT_NAME"] = "push"
    Path(run.event["GITHUB_EVENT_PATH"]).write_text(json.dumps({"before": "0" * 40}))
    assert run.go() == 1, run.log
    assert run.ran == ["What changed", "Advise", "Gate"]
    assert "regression: inconclusive: there is no report to compare with" in run.log
    assert "`dddddddddddd`" in run.summary


def test_an_input_cannot_run_anything(tmp_path: Path, workspace: Path, hub: FakeGitHub) -> None:
    bad = '$(touch pwned)"; touch pwned; `touch pwned`'
    run = started(tmp_path, workspace, hub, target=bad)
    assert run.go() == 2
    assert not (workspace / "pwned").exists()
    assert "error: " in run.log


def test_the_workload_is_wrong(tmp_path: Path, workspace: Path, hub: FakeGitHub) -> None:
    (workspace / "job.yaml").write_text(JOB.replace("llama3-8b", "lama"))
    run = started(tmp_path, workspace, hub, **{"fail-on": "oom"})
    assert run.go() == 2
    assert run.ran == ["What changed", "Advise"]
    assert "lama" in run.log


def test_no_step_interpolates_into_its_script() -> None:
    action = yaml.safe_load(ACTION.read_text())
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), step["name"]
        if "uses" in step:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])
    named = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text()))
    assert named == set(action["inputs"])
