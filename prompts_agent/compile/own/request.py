"""OwnRequest: which function to compile, with which arguments, and for what."""

from __future__ import annotations

import re

from prompts_agent.compile.request import Until
from prompts_agent.compile.target import Target
from prompts_agent.errors import InputError
from prompts_agent.record import Record

__all__ = ["OwnRequest", "checked_name"]

_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class OwnRequest(Record):
    """One compile of a user's function. `directory` is put first where modules are looked for."""

    function: str
    arguments: str
    directory: str
    target: Target
    compiler: str
    until: Until
    memory_limit_bytes: int | None = None


def checked_name(text: str, option: str) -> str:
    """`module:name`. Raises `InputError` for anything else."""
    if _NAME.fullmatch(text) is None:
        raise InputError(
            f"{option} {text}",
            rule="a function is named by its module and its name in it",
            cure=f"Write {option} package.module:name.",
        )
    return text
