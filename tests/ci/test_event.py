"""Payloads as GitHub documents them: a push, a new branch, a pull request, one from a fork."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prompts_agent.ci.event import github_event
from prompts_agent.errors import InputError


def environment(tmp_path: Path, name: str, payload: Any) -> dict[str, str]:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload))
    return {"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(path), "GITHUB_SHA": "c" * 40}


def pull_request(head_repository: str | None) -> dict[str, Any]:
    origin = None if head_repository is None else {"full_name": head_repository}
    return {
        "pull_request": {
            "number": 7,
            "head": {"sha": "b" * 40, "repo": origin},
            "base": {"sha": "a" * 40, "repo": {"full_name": "o/r"}},
        }
    }


def test_a_push(tmp_path: Path) -> None:
    event = github_event(environment(tmp_path, "push", {"before": "a" * 40}))
    assert (event.kind, event.base, event.head) == ("push", "a" * 40, "c" * 40)


def test_a_new_branch_has_nothing_before_it(tmp_path: Path) -> None:
    assert github_event(environment(tmp_path, "push", {"before": "0" * 40})).base is None


@pytest.mark.parametrize(("origin", "fork"), [("o/r", False), ("mallory/r", True), (None, True)])
def test_a_pull_request(tmp_path: Path, origin: str | None, fork: bool) -> None:
    event = github_event(environment(tmp_path, "pull_request", pull_request(origin)))
    assert event.kind == "pull_request"
    assert (event.base, event.head, event.number) == ("a" * 40, "b" * 40, 7)
    assert event.from_fork is fork


def test_a_schedule_is_something_else(tmp_path: Path) -> None:
    assert github_event(environment(tmp_path, "schedule", {})).kind == "other"


@pytest.mark.parametrize("payload", [{}, {"pull_request": 3}, {"pull_request": {"number": 7}}])
def test_a_payload_without_a_pull_request(tmp_path: Path, payload: Any) -> None:
    with pytest.raises(InputError, match="a pull_request event holds"):
        github_event(environment(tmp_path, "pull_request", payload))


def test_no_payload(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        github_event({"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": str(tmp_path / "none")})
    with pytest.raises(InputError, match="a JSON object"):
        github_event(environment(tmp_path, "push", [1]))
