"""What a step hands back to the runner: outputs, and the page of the run."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from prompts_agent.errors import InputError

__all__ = ["SUMMARY_LIMIT", "add_summary", "set_outputs"]

SUMMARY_LIMIT = 1024 * 1024
"""Bytes of a step's summary; the runner drops a larger one whole."""


def set_outputs(values: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Append to the file that `GITHUB_OUTPUT` names; nothing where there is none.

    Each value stands between two lines of a delimiter nobody can guess, so that no value can end
    early and set another output.
    """
    path = environment.get("GITHUB_OUTPUT")
    if not path:
        return
    with Path(path).open("a", encoding="utf-8") as file:
        for name, value in values.items():
            delimiter = f"end-{secrets.token_hex(16)}"
            file.write(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")


def add_summary(text: str, environment: Mapping[str, str]) -> bool:
    """Append to the run's page; False where there is none. Raises `InputError` for a text that the
    runner would drop.
    """
    path = environment.get("GITHUB_STEP_SUMMARY")
    if not path:
        return False
    size = len(text.encode())
    if size > SUMMARY_LIMIT:
        raise InputError(
            f"{size:,} bytes",
            rule=f"a step's summary holds at most {SUMMARY_LIMIT:,}",
            cure="Give what `--format github` wrote.",
        )
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else text + "\n")
    return True
