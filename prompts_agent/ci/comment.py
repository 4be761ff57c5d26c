"""Comment: one on a pull request, found again by its marker and kept up to date."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from prompts_agent.ci.http import Api
from prompts_agent.errors import InputError, OutputError
from prompts_agent.record import Record

__all__ = ["Forge", "GitHub", "GitLab", "Posted", "post"]

_MARKER = re.compile(r"<!-- prompts:[\w.-]{1,64} -->")


class Note(Record):
    """A comment that exists."""

    id: int
    body: str


class Posted(Record):
    """What was done, or with a dry run would be."""

    action: Literal["created", "updated", "unchanged"]
    url: str | None = None


class Forge(Protocol):
    """Where comments are kept."""

    limit: int
    """Characters of the longest comment."""

    def notes(self) -> list[Note]:
        """Every comment of the pull request, oldest first."""

    def create(self, body: str) -> str | None:
        """The new comment's address."""

    def update(self, note: Note, body: str) -> str | None:
        """The comment's address."""


def post(body: str, forge: Forge, *, dry_run: bool = False) -> Posted:
    """Creates the comment, or brings the one with the same marker up to date.

    A comment is ours if it begins with our marker: a quotation of it in somebody's answer does not.
    One that may not be edited (somebody pasted ours) is left, and a new one is made. Raises
    `InputError` for a body without a marker or too long, `OutputError` where the forge refuses.
    """
    found = _MARKER.match(body)
    if found is None:
        raise InputError(
            body[:40] or "an empty comment",
            rule="a comment begins with its marker, `<!-- prompts:TAG -->`",
            cure="Give what `--format github` wrote.",
        )
    if len(body) > forge.limit:
        raise InputError(
            f"{len(body):,} characters",
            rule=f"a comment holds at most {forge.limit:,}",
            cure="Give what `--format github` wrote: it keeps within the limit.",
        )
    ours = [note for note in forge.notes() if note.body.startswith(found.group())]
    for note in ours:
        if note.body.strip() == body.strip():
            return Posted(action="unchanged")
        if dry_run:
            return Posted(action="updated")
        try:
            return Posted(action="updated", url=forge.update(note, body))
        except OutputError as error:
            if "answered 403" not in error.rule and "answered 404" not in error.rule:
                raise
    return Posted(action="created", url=None if dry_run else forge.create(body))


class GitHub:
    """A pull request of a repository `owner/name` (docs.github.com, REST, issue comments)."""

    limit = 65_536

    def __init__(self, repository: str, number: int, token: str, url: str) -> None:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
            raise InputError(
                repository, rule="a repository is owner/name", cure="Give --repository owner/name."
            )
        self._path = f"/repos/{repository}/issues"
        self._number = number
        self._api = Api(
            url,
            {
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {token}",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )

    def notes(self) -> list[Note]:
        """Comments of the pull request."""
        listed = self._api.pages(f"{self._path}/{self._number}/comments")
        return [_note(item) for item in listed]

    def create(self, body: str) -> str | None:
        """POST."""
        path = f"{self._path}/{self._number}/comments"
        return _text(self._api.send("POST", path, {"body": body}).json(), "html_url")

    def update(self, note: Note, body: str) -> str | None:
        """PATCH."""
        answer = self._api.send("PATCH", f"{self._path}/comments/{note.id}", {"body": body})
        return _text(answer.json(), "html_url")


class GitLab:
    """A merge request of a project: its number or `group%2Fname` (docs.gitlab.com, notes API)."""

    limit = 1_000_000

    def __init__(self, project: str, number: int, token: str, url: str) -> None:
        if not re.fullmatch(r"[\w.%-]+", project):
            raise InputError(
                project, rule="a project is a number or an encoded path", cure="Give --repository."
            )
        self._path = f"/projects/{project}/merge_requests/{number}/notes"
        self._api = Api(url, {"PRIVATE-TOKEN": token})

    def notes(self) -> list[Note]:
        """Notes of the merge request."""
        return [_note(item) for item in self._api.pages(self._path)]

    def create(self, body: str) -> str | None:
        """POST."""
        self._api.send("POST", self._path, {"body": body})
        return None

    def update(self, note: Note, body: str) -> str | None:
        """PUT."""
        self._api.send("PUT", f"{self._path}/{note.id}", {"body": body})
        return None


def _note(item: Mapping[str, Any]) -> Note:
    return Note(id=int(item["id"]), body=str(item.get("body") or ""))


def _text(item: Mapping[str, Any], name: str) -> str | None:
    value = item.get(name)
    return value if isinstance(value, str) else None
