"""Given: the flags of a file, however it writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prompts_agent.errors import InputError
from prompts_agent.record import Record

__all__ = ["GivenFlag", "flags_of", "read_flags"]

_FLAG = re.compile(
    r"""--?(?P<name>[A-Za-z]\w*)(?:=(?P<value>"[^"]*"|'[^']*'|[^\s"',\\]*))?|
        ["']?(?P<key>(?:xla|megascale|tpu|jax)_\w+)["']?\s*[:=]\s*(?P<given>"[^"]*"|'[^']*'|[^\s"',\\}]+)
    """,
    re.VERBOSE,
)
_COMMENT = re.compile(r"(?m)(?:^|\s)#.*$")


class GivenFlag(Record):
    """`--name=value`; a flag without a value is `true`."""

    name: str
    value: str


def read_flags(path: Path) -> tuple[GivenFlag, ...]:
    """The flags of a file. Raises `InputError` where it cannot be read or names none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InputError(str(path), rule=reason, cure="Give a file of flags.") from error
    found = flags_of(text)
    if not found:
        raise InputError(
            str(path),
            rule="it names no compiler flag",
            cure="Write --xla_name=value, as in XLA_FLAGS and LIBTPU_INIT_ARGS; or name: value.",
        )
    return found


def flags_of(text: str) -> tuple[GivenFlag, ...]:
    """Flags as a shell script, an environment variable, JSON or YAML has them, in their order."""
    mapped = _mapping(text)
    if mapped is not None:
        return mapped
    found = []
    for match in _FLAG.finditer(_COMMENT.sub("", text)):
        name = match["name"] or match["key"]
        value = match["value"] if match["name"] else match["given"]
        if _is_flag(name):
            found.append(GivenFlag(name=name, value=(value or "true").strip("\"'") or "true"))
    return tuple(found)


def _is_flag(name: str) -> bool:
    """Only what can be a compiler's: a script has other options too, and variables of its own."""
    return name.islower() and name.partition("_")[0] in ("xla", "megascale", "tpu", "jax")


def _mapping(text: str) -> tuple[GivenFlag, ...] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    return tuple(
        GivenFlag(name=str(name).lstrip("-"), value=_plain(value)) for name, value in found.items()
    )


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
