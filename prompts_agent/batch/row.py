"""Row: how one item ended. The journal's lines, and the start of every table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from prompts_agent.batch.item import Item
from prompts_agent.batch.job import Answer, read_answer, report_digest
from prompts_agent.errors import ExitCode
from prompts_agent.record import Record
from prompts_agent.workers.outcome import Outcome

__all__ = ["DONE", "Row", "Status", "row_of"]

Status = Literal[
    "done", "cannot_tell", "bad_input", "timed_out", "out_of_memory", "crashed", "defect"
]
DONE: tuple[Status, ...] = ("done", "cannot_tell")
"""Read and answered; the others are failures, each with its reason."""

_MESSAGE = 2000


class Row(Record):
    """One item's end. `wall_s`, `peak_bytes` and `finished_at` differ from run to run; the rest is
    the same for the same item, settings and version.
    """

    item: Item
    key: str
    status: Status
    reason: str | None = None
    """In a word or two, for counting: an error's class, a signal, a limit."""
    message: str | None = None
    report: str | None = None
    """SHA-256 of the report's bytes, which is its name too."""
    answer: Answer | None = None
    wall_s: float = 0.0
    peak_bytes: int | None = None
    finished_at: datetime


def row_of(item: Item, outcome: Outcome) -> tuple[Row, bytes | None]:
    """The row, and the report where there is one."""
    answer, report = None, None
    if outcome.ended == "returned":
        answer, report = read_answer(outcome.result)
    silent = answer is not None and answer.silent
    row = Row(
        item=item,
        key=item.key,
        status=_status(outcome, silent=silent),
        reason="the trace tells nothing" if silent else outcome.reason,
        message=None if outcome.message is None else outcome.message[:_MESSAGE],
        report=None if report is None else report_digest(report),
        answer=answer,
        wall_s=round(outcome.wall_s, 4),
        peak_bytes=outcome.peak_bytes,
        finished_at=datetime.now(UTC),
    )
    return row, report


def _status(outcome: Outcome, *, silent: bool) -> Status:
    if outcome.ended == "returned":
        return "cannot_tell" if silent else "done"
    if outcome.ended != "raised":
        return outcome.ended
    code = outcome.failure.exit_code if outcome.failure is not None else ExitCode.INTERNAL
    if code == ExitCode.NOT_DIAGNOSABLE:
        return "cannot_tell"
    return "bad_input" if code == ExitCode.BAD_INPUT else "defect"
