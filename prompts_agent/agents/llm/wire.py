"""The wire: replies of bounded size and duration, and errors as `LlmFailure` without secrets."""

from __future__ import annotations

import email.utils
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

from prompts_agent.agents.llm.failure import FailureKind, LlmFailure

__all__ = ["MOST_BYTES", "bounded", "classified", "redacted", "retry_after_s", "within"]

MOST_BYTES = 512 * 1024
"""Of one reply as it comes over the wire: an answer takes a few KB."""

T = TypeVar("T")
_FORM = re.compile(r"json|grammar|response_format|schema", re.IGNORECASE)
"""A server's own error that is about the form asked for: another form may do."""
_SECRETS = re.compile(
    r"\b(?:sk|rk|pk|gsk|xai)-[\w\-*.]{6,}|\b(?:hf|gsk)_[A-Za-z0-9]{16,}"
    r"|(?i:(?:authorization\S*\s+)?bearer\s+\S+|authorization:\s*\S+)"
)


def redacted(text: str, key: str | None) -> str:
    """`text` without the key, and without anything that looks like one."""
    if key:
        text = text.replace(key, "[key]")
    return _SECRETS.sub("[key]", text)


def within(seconds: float, call: Callable[[], T]) -> T:
    """The result of `call`, or `LlmFailure("timeout")`; a server that drips bytes cannot hold us.

    The call runs in a daemon thread, which an exit does not wait for.
    """
    outcome: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(call())
        except BaseException as error:  # noqa: BLE001 - it is raised again by the caller's thread
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True, name="language-model")
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not outcome:
        raise LlmFailure("timeout", f"no whole reply within {seconds:.1f} s")
    return outcome[0]


def bounded(deadline: Callable[[], float]) -> Callable[[Any], None]:
    """A response hook for the HTTP client: stops reading past MOST_BYTES or the deadline.

    `deadline` gives a moment of `time.monotonic`.
    """

    def hook(response: Any) -> None:
        response.stream = _wrapped(response.stream, deadline())

    return hook


def _wrapped(stream: Any, deadline: float) -> Any:
    # openai brings one of two HTTP libraries; both ask for a subclass of their own stream class.
    base: Any = next(kind for kind in type(stream).__mro__ if kind.__name__ == "SyncByteStream")

    class Bounded(base):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for part in stream:
                size += len(part)
                if size > MOST_BYTES:
                    raise LlmFailure("too long", f"the reply is larger than {MOST_BYTES} bytes")
                if time.monotonic() > deadline:
                    raise LlmFailure("timeout", "the reply came too slowly")
                yield part

        def close(self) -> None:
            stream.close()

    return Bounded()


def retry_after_s(error: BaseException) -> float | None:
    """What the server's Retry-After asks for: seconds, or a date."""
    response = getattr(error, "response", None)
    value = response.headers.get("retry-after") if response is not None else None
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def classified(error: BaseException, key: str | None) -> LlmFailure:
    """The failure that an exception of the client stands for."""
    import openai

    if isinstance(error, LlmFailure):
        return error
    for cause in (error.__cause__, error.__context__):
        if isinstance(cause, LlmFailure):
            return cause
    status = getattr(error, "status_code", None)
    detail = redacted(f"{type(error).__name__}: {error}", key)[:300]
    if isinstance(error, openai.APITimeoutError):
        return LlmFailure("timeout", "no reply in time")
    if isinstance(error, openai.APIConnectionError):
        return LlmFailure("connection", detail)
    if isinstance(status, int):
        return LlmFailure(_kind_of(status, detail), f"HTTP {status}: {detail}")
    # A body that is no JSON, a reply without choices, half a stream.
    return LlmFailure("no text", detail)


def _kind_of(status: int, detail: str) -> FailureKind:
    if status == 429:
        return "rate limit"
    if status in (401, 403, 404):
        return "refused"
    if status == 408:
        return "timeout"
    if status < 500 or status == 501 or _FORM.search(detail):
        return "bad request"
    return "server error"
