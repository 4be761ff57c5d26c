"""RunRecord: JSON lines of what was asked and answered, and at the end the report.

The first line describes the run, then a line for every answer or failure, and the last holds the
report, so that `prompts replay` shows it again with no model. No line holds a key.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from prompts_agent.agents.llm.places import state_directory
from prompts_agent.agents.report import Report
from prompts_agent.errors import InputError, OutputError
from prompts_agent.record import Record

__all__ = [
    "CallLine",
    "Line",
    "ReportLine",
    "RunLine",
    "RunRecord",
    "default_path",
    "read_record",
    "report_of",
    "sha256_of",
]

FORMAT = 1


class RunLine(Record):
    """What was run, on what, with which model."""

    kind: Literal["run"] = "run"
    format: int = FORMAT
    tool_version: str
    started: str
    """UTC, ISO 8601."""
    model: str
    endpoint: str
    seed: int
    temperature: float | None
    limits: dict[str, float | None]


class CallLine(Record):
    """One question and what became of it."""

    kind: Literal["call"] = "call"
    node: str
    turn: int
    """From 1: the node asks again where its answer was turned away."""
    inputs: tuple[str, ...]
    """Ids of the facts, findings, recipes and layouts that the question held."""
    template: str
    """Name and version, `analyst@1`."""
    prompt_sha256: str
    model: str
    seed: int
    mode: str | None = None
    """How the form of the reply was asked for."""
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens_estimated: bool = False
    latency_s: float = 0.0
    raw: str | None = None
    """The reply as it came, at most 20,000 characters; None where none came."""
    failure: str | None = None
    rejected: tuple[dict[str, str], ...] = ()
    """What a gate turned away and why: `reason`, and `what` of the model's own text."""


class ReportLine(Record):
    """The report at the end of a run that came to its end."""

    kind: Literal["report"] = "report"
    report: Report


Line = Annotated[RunLine | CallLine | ReportLine, Field(discriminator="kind")]
_LINE: TypeAdapter[RunLine | CallLine | ReportLine] = TypeAdapter(Line)


def default_path(environment: Mapping[str, str] | None = None) -> Path:
    """A name of its own under `$XDG_STATE_HOME/prompts/runs` (`~/.local/state/prompts/runs`)."""
    when = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return state_directory(environment) / "runs" / f"{when}-{secrets.token_hex(3)}.jsonl"


class RunRecord:
    """A file that grows by a line at a time, so that an interrupted run leaves what it had."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[RunLine | CallLine | ReportLine] = []

    def open(self, *, make_directory: bool = False, resume: bool = False) -> None:
        """Create the file, readable by its owner alone. Raises `OutputError`, also where it exists:
        a record is never overwritten. With `resume`, the record of a run that did not come to its
        end goes on instead.
        """
        if resume and self._is_unfinished():
            return
        try:
            if make_directory:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError as error:
            raise OutputError(
                str(self.path),
                rule="a record is never overwritten, and a file of that name exists",
                cure="Choose another name.",
            ) from error
        except OSError as error:
            raise OutputError(
                str(self.path),
                rule=error.strerror or type(error).__name__,
                cure="Give another file with --record.",
            ) from error

    def _is_unfinished(self) -> bool:
        """The file is a record without a report; a last line that was cut off is taken away."""
        try:
            lines = read_record(self.path)
            if not lines or any(isinstance(line, ReportLine) for line in lines):
                return False
            whole = self.path.read_bytes()
            os.truncate(self.path, whole.rfind(b"\n") + 1)
        except (InputError, OSError):
            return False
        return True

    def write(self, line: RunLine | CallLine | ReportLine) -> None:
        """Append a line. A disk that fills up costs the record, not the run."""
        self.lines.append(line)
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line.model_dump_json() + "\n")
        except OSError:
            return


def read_record(path: Path) -> list[RunLine | CallLine | ReportLine]:
    """The lines of a record; a last line that was cut off is left out.

    Raises `InputError` for a file that is no record.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            str(path), rule="cannot be read as text", cure="Give a record of a run."
        ) from error
    found: list[RunLine | CallLine | ReportLine] = []
    lines = [line for line in text.split("\n") if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            found.append(_LINE.validate_json(line))
        except ValidationError as error:
            if number == len(lines) and not text.endswith("\n"):
                break
            first: Any = error.errors(include_input=False, include_url=False)[0]
            raise InputError(
                f"line {number} of {path}",
                rule=f"is no line of a record ({first['msg']})",
                cure="Give a file that --record wrote, by this version or an older one.",
            ) from error
    return found


def report_of(path: Path) -> Report:
    """The report at the end of a record. Raises `InputError` where there is none."""
    lines = read_record(path)
    found = [line.report for line in lines if isinstance(line, ReportLine)]
    if not lines or not isinstance(lines[0], RunLine):
        raise InputError(
            str(path), rule="is no record of a run", cure="Give a file that --record wrote."
        )
    if not found:
        raise InputError(
            str(path),
            rule="the run did not come to its end, so it holds no report",
            cure="Give the command of the run again with --resume, and replay the new record.",
        )
    return found[-1]


def sha256_of(text: str) -> str:
    """Hex digest of a text's UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
