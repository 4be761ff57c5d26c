"""A report that was stored as JSON, read back."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from prompts_agent.agents.report import SCHEMA_VERSION, Report
from prompts_agent.errors import InputError

__all__ = ["is_report", "stored_report"]

_HEAD = b'"schema_version"'
_HEAD_BYTES = 64


def is_report(path: Path) -> bool:
    """Begins as the JSON of a report does, which no trace does."""
    try:
        with path.open("rb") as file:
            return _HEAD in file.read(_HEAD_BYTES)
    except OSError:
        return False


def stored_report(path: Path) -> Report:
    """Raises `InputError` for a file that cannot be read or is no report of this schema."""
    try:
        return Report.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(
            str(path),
            rule=error.strerror or "it cannot be read",
            cure="Give the file that `prompts diagnose --format json -o FILE` wrote.",
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(
            str(path),
            rule=f"it is no report of schema {SCHEMA_VERSION}: {where}: {first['msg']}",
            cure="Write it again with `prompts diagnose --format json -o FILE`.",
        ) from error
