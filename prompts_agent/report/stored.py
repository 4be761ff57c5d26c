"""A report that was stored as JSON, read back."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from prompts_agent.agents.report import SCHEMA_VERSION, Report
from prompts_agent.errors import InputError

__all__ = ["stored_report"]


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
