"""LlmFailure: why the model gave no answer. It never leaves this room: the run goes on without."""

from __future__ import annotations

from typing import Literal

__all__ = ["FailureKind", "LlmFailure"]

FailureKind = Literal[
    "budget",
    "rate limit",
    "server error",
    "timeout",
    "connection",
    "refused",
    "bad request",
    "too long",
    "no text",
    "unavailable",
]


class LlmFailure(Exception):  # noqa: N818 - no error of the program: an answer that did not come
    """`kind` is one of a few words, `detail` a line that holds no key."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind: FailureKind = kind
        self.detail = detail
