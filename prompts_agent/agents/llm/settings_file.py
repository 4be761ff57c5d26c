"""Settings of the language model in `prompts.toml` or pyproject's `[tool.prompts]`.

Both hold a table `llm`: `[llm]` in prompts.toml, `[tool.prompts.llm]` in pyproject.toml.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prompts_agent.errors import SettingError

__all__ = ["Settings", "read_settings"]

_KNOWN = frozenset(
    {
        "base_url",
        "model",
        "reply_tokens",
        "retries",
        "seconds",
        "seed",
        "temperature",
        "tokens",
        "usd",
        "usd_per_million_input",
        "usd_per_million_output",
    }
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The `llm` table of the nearest file; empty where there is none."""

    values: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None

    @property
    def place(self) -> str:
        """The file, for a message."""
        return str(self.path) if self.path is not None else "[tool.prompts.llm] of pyproject.toml"


def read_settings(directory: Path) -> Settings:
    """From `directory` upwards, the first file that has an `llm` table.

    A file of another user is passed over: in a shared directory anybody could leave one. Raises
    `SettingError` for a file that cannot be read or holds a key that is not known.
    """
    here = directory.resolve()
    for folder in (here, *here.parents):
        for name, tables in (("prompts.toml", ()), ("pyproject.toml", ("tool", "prompts"))):
            path = folder / name
            if not path.is_file() or not _is_ours(path):
                continue
            table = _table(path, (*tables, "llm"))
            if table is not None:
                return Settings(values=_checked(table, path), path=path)
    return Settings()


def _is_ours(path: Path) -> bool:
    return not hasattr(os, "getuid") or path.stat().st_uid in (os.getuid(), 0)


def _table(path: Path, names: tuple[str, ...]) -> dict[str, Any] | None:
    try:
        text = path.read_text(encoding="utf-8")
        if path.name == "pyproject.toml" and "prompts" not in text:
            return None  # most files, and no parser has to be loaded for them
        import tomllib

        found: Any = tomllib.loads(text)
    except (OSError, ValueError) as error:
        if path.name == "pyproject.toml":
            return None  # another tool's to complain about
        raise SettingError(
            str(path), rule=f"is not readable TOML ({error})", cure="Mend it or remove it."
        ) from error
    heading = f"[{'.'.join(names)}]"
    for name in names:
        outer = found if isinstance(found, dict) else {}
        found = outer.get(name)
    if found is not None and not isinstance(found, dict):
        raise SettingError(
            f"`llm` in {path}",
            rule="is a table",
            cure=f'Write {heading} and below it model = "NAME".',
        )
    if found is None and (misplaced := sorted(_KNOWN & set(outer))):
        raise SettingError(
            f"{misplaced[0]!r} in {path}",
            rule=f"belongs in the table {heading}",
            cure=f"Write {heading} above it.",
        )
    return found


def _checked(table: dict[str, Any], path: Path) -> dict[str, Any]:
    unknown = sorted(set(table) - _KNOWN)
    if any("key" in name.lower() for name in unknown):
        raise SettingError(
            f"a key in {path}",
            rule="keys do not belong in files that are committed",
            cure="Remove it there and set PROMPTS_LLM_API_KEY.",
        )
    if unknown:
        raise SettingError(
            f"{unknown[0]!r} in {path}",
            rule="is no setting of the language model",
            cure=f"The settings are {', '.join(sorted(_KNOWN))}.",
        )
    return table
