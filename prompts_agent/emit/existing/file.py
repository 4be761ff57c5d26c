"""Reading a config file into settings: YAML, TOML, Python, or a shell script or command line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from prompts_agent.emit.existing.python_text import python_entries
from prompts_agent.emit.existing.settings import Entry, Settings, Value, normal, parsed
from prompts_agent.emit.existing.shell import shell_entries
from prompts_agent.errors import InputError
from prompts_agent.workload.document import Document, read_document

__all__ = ["read_settings", "settings_of"]

_MAX_BYTES = 1_000_000
_TOML_KEY = re.compile(r"\s*([\w.-]+)\s*=")


def read_settings(path: Path) -> Settings:
    """The settings of a file, by its suffix; without a known one it is read as a command line.

    Raises `InputError` for a file that cannot be read or parsed.
    """
    text, suffix = _text(path), path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        entries = tuple(_yaml(read_document(path)))
        return Settings(file=str(path), form="yaml", entries=entries, text=text)
    forms: dict[str, Literal["python", "toml"]] = {".py": "python", ".toml": "toml"}
    return settings_of(text, forms.get(suffix, "shell"), str(path))


def settings_of(
    text: str, form: Literal["yaml", "shell", "python", "toml"], file: str = "config"
) -> Settings:
    """The settings of a text. YAML is read here as the flat mapping that an emitter writes.

    Raises `InputError` for a text that cannot be parsed.
    """
    words: tuple[tuple[str, int], ...] = ()
    if form == "python":
        entries = _python(file, text)
    elif form == "toml":
        entries = _toml(file, text)
    elif form == "yaml":
        entries = tuple(_flat(text))
    else:
        entries, words = shell_entries(text)
    return Settings(file=file, form=form, entries=entries, words=words, text=text)


def _flat(text: str) -> Iterator[Entry]:
    for line, row in enumerate(text.splitlines(), 1):
        key, colon, value = row.partition(": ")
        if colon and not row.startswith("#"):
            yield Entry(key=normal(key), value=parsed(value.strip()), line=line, written=key)


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        text = path.read_text(encoding="utf-8-sig") if size <= _MAX_BYTES else ""
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise InputError(str(path), rule=reason, cure="Check the path.") from error
    except UnicodeDecodeError as error:
        raise InputError(
            str(path), rule="it is not UTF-8 text", cure="Give a config as text."
        ) from error
    if size > _MAX_BYTES:
        raise InputError(
            f"{path} ({size} bytes)",
            rule=f"a config that a person writes is below {_MAX_BYTES} bytes",
            cure="Give the config file alone.",
        )
    if not text.strip():
        raise InputError(str(path), rule="the file is empty", cure="Give a config.")
    return text


def _yaml(document: Document) -> Iterator[Entry]:
    """Every scalar under its own key, wherever it stands: Megatron nests, MaxText does not."""
    for path, line in document.lines.items():
        if not path or not isinstance(path[-1], str):
            continue
        value: Any = document.value
        for part in path:
            value = value[part]
        written = path[-1]
        if isinstance(value, list):
            yield Entry(key=normal(written), value="a list", line=line, written=written)
        elif not isinstance(value, dict):
            yield Entry(key=normal(written), value=value, line=line, written=written)


def _python(file: str, text: str) -> tuple[Entry, ...]:
    try:
        return python_entries(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(
            f"{file}:{line}" if line else file,
            rule="it is not Python",
            cure="Give a file that Python itself can import.",
        ) from error


def _toml(file: str, text: str) -> tuple[Entry, ...]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(file, rule=f"it is not TOML: {error}", cure="Mend it.") from error
    lines: dict[str, int] = {}
    for number, row in enumerate(text.splitlines(), 1):
        match = _TOML_KEY.match(row)
        if match:
            lines[normal(match[1])] = number
    return tuple(
        Entry(key=normal(key), value=value, line=lines.get(normal(key), 1), written=key)
        for key, value in _scalars(data)
    )


def _scalars(data: dict[str, object]) -> Iterator[tuple[str, Value]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _scalars(value)
        elif isinstance(value, bool | int | float | str):
            yield key, value
