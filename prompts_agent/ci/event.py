"""Event: what a run of a workflow was started for, from the files that the runner gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from prompts_agent.errors import InputError
from prompts_agent.record import Record

__all__ = ["Event", "github_event"]

_NO_COMMIT = "0" * 40
"""What a push that creates a branch has as `before`."""


class Event(Record):
    """A push or a pull request; `other` for schedules, manual runs and all else."""

    kind: Literal["push", "pull_request", "other"]
    base: str | None = None
    """Commit that the change is held against; None where there is none, as for a new branch."""
    head: str | None = None
    """Commit of the author, not the merge that the runner checks out."""
    number: int | None = None
    """Of the pull request."""
    from_fork: bool = False
    """The run's token may then write nothing."""


def github_event(environment: Mapping[str, str]) -> Event:
    """The event in `GITHUB_EVENT_NAME` and `GITHUB_EVENT_PATH`.

    Raises `InputError` where the payload is missing or is no JSON object.
    """
    name = environment.get("GITHUB_EVENT_NAME", "")
    payload = _payload(environment.get("GITHUB_EVENT_PATH", ""))
    if name in ("pull_request", "pull_request_target"):
        return _pull_request(payload)
    head = environment.get("GITHUB_SHA")
    if name == "push":
        before = payload.get("before")
        base = before if isinstance(before, str) and before != _NO_COMMIT else None
        return Event(kind="push", base=base, head=head)
    return Event(kind="other", head=head)


def _pull_request(payload: dict[str, Any]) -> Event:
    try:
        request = payload["pull_request"]
        head, base = request["head"], request["base"]
        # A fork that was deleted meanwhile has no repository any more.
        origin = (head.get("repo") or {}).get("full_name")
        return Event(
            kind="pull_request",
            base=base["sha"],
            head=head["sha"],
            number=request["number"],
            from_fork=origin != base["repo"]["full_name"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"the event's payload lacks {error}",
            rule="a pull_request event holds number, head and base",
            cure="Run this from a workflow that `on: pull_request` starts.",
        ) from error


def _payload(path: str) -> dict[str, Any]:
    try:
        payload = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(
            f"GITHUB_EVENT_PATH {path!r}",
            rule=f"the event's payload cannot be read: {error}",
            cure="Run this inside a GitHub workflow, or give --pull-request and --repository.",
        ) from error
    if not isinstance(payload, dict):
        raise InputError(
            f"GITHUB_EVENT_PATH {path!r}",
            rule="the event's payload is a JSON object",
            cure="Run this inside a GitHub workflow.",
        )
    return payload
