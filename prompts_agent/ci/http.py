"""Requests to a forge's REST API: a few retries where it asks for patience, clear errors else."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from prompts_agent.errors import OutputError

__all__ = ["Api"]

_TRIES = 4
_LONGEST_WAIT_S = 60.0
_TIMEOUT_S = 30.0
_LARGEST_PAGE = 100
_MOST_PAGES = 50
_CURES = {
    401: "Give a token that is valid.",
    403: "Give the job the right to write: `permissions: pull-requests: write`. The token of a "
    "pull request from a fork cannot have it; the step summary shows the same text there.",
    404: "Check repository, number and that the token may see them.",
    422: "Shorten the text or check the number: the forge refused the content.",
}


class Api:
    """One forge, one token. The token stands in a header and in no message."""

    def __init__(
        self, url: str, headers: Mapping[str, str], *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client = httpx.Client(
            base_url=url, headers=dict(headers), timeout=_TIMEOUT_S, follow_redirects=False
        )
        self._sleep = sleep

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        """The answer, 2xx. Raises `OutputError` for every other one, and for no answer.

        A request is repeated where nothing was done: on a rate limit (429, or 403 that says when to
        come back) and, unless it creates something, on 5xx and lost connections.
        """
        repeatable = method != "POST"
        for attempt in range(_TRIES):
            last = attempt == _TRIES - 1
            try:
                answer = self._client.request(method, path, json=body)
            except httpx.HTTPError as error:
                if last or not (repeatable or isinstance(error, httpx.ConnectError)):
                    raise OutputError(
                        f"{method} {path}",
                        rule=f"the forge did not answer: {type(error).__name__}",
                        cure="Run the step again.",
                    ) from error
                self._sleep(2.0**attempt)
                continue
            if answer.is_success:
                return answer
            wait = _patience(answer, attempt, repeatable=repeatable)
            if wait is None or last:
                raise _refused(method, path, answer)
            self._sleep(wait)
        raise AssertionError("unreachable")  # pragma: no cover

    def pages(self, path: str) -> list[dict[str, Any]]:
        """Every object of a listing, following `Link: rel=next`."""
        found: list[dict[str, Any]] = []
        target: str | None = f"{path}?per_page={_LARGEST_PAGE}"
        for _ in range(_MOST_PAGES):
            if target is None:
                break
            answer = self.send("GET", target)
            found += answer.json()
            target = answer.links.get("next", {}).get("url")
            if target is not None:
                self._same_host(target)
        return found

    def _same_host(self, target: str) -> None:
        """The token goes with the request: never to another host than the one it was given for."""
        url = httpx.URL(target)
        if url.host and url.host != self._client.base_url.host:
            raise OutputError(
                target, rule="the next page is on another host", cure="Check the API's address."
            )


def _patience(answer: httpx.Response, attempt: int, *, repeatable: bool) -> float | None:
    """Seconds to wait before another try; None where another try would not help."""
    if answer.status_code in (403, 429):
        asked = answer.headers.get("retry-after", "")
        if asked.isdigit():
            return _short_enough(float(asked))
        if answer.headers.get("x-ratelimit-remaining") == "0":
            reset = answer.headers.get("x-ratelimit-reset", "")
            return _short_enough(float(reset) - time.time()) if reset.isdigit() else None
        limited = answer.status_code == 429 or "rate limit" in answer.text.lower()
        return _LONGEST_WAIT_S if limited else None
    return 2.0**attempt if answer.status_code >= 500 and repeatable else None


def _short_enough(seconds: float) -> float | None:
    """A primary limit resets within the hour: longer than a job should hang."""
    return max(seconds, 0.0) if seconds <= _LONGEST_WAIT_S else None


def _refused(method: str, path: str, answer: httpx.Response) -> OutputError:
    try:
        said = str(answer.json().get("message", ""))
    except (ValueError, AttributeError):
        said = ""
    reason = f": {said}" if said else ""
    return OutputError(
        f"{method} {path}",
        rule=f"the forge answered {answer.status_code}{reason}",
        cure=_CURES.get(answer.status_code, "Run the step again later."),
    )
