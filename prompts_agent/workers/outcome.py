"""Limits of a task, and how it ended."""

from __future__ import annotations

import signal
from typing import Literal

from pydantic import Field

from prompts_agent.record import Record

__all__ = ["Ended", "Failure", "Limits", "Outcome", "signal_name"]

Ended = Literal["returned", "raised", "crashed", "timed_out", "out_of_memory"]


class Limits(Record):
    """What one task may use, with every process that it starts."""

    timeout_s: float = Field(default=600.0, gt=0)
    memory_bytes: int | None = Field(default=None, gt=0)
    """Resident; None: no limit but the machine's."""


class Failure(Record):
    """An exception that a task raised: its class, and the parts of a `PromptsError`."""

    name: str
    exit_code: int
    value: str
    rule: str
    cure: str


class Outcome(Record):
    """How a task ended. `result` is what it returned; `failure` what it raised."""

    ended: Ended
    reason: str | None = None
    """In a word or two, for counting: a signal, an exception's class, a limit."""
    message: str | None = None
    failure: Failure | None = None
    wall_s: float = 0.0
    peak_bytes: int | None = None
    """Resident, of the task's own process."""
    result: bytes = b""


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
