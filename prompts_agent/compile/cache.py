"""Cache: answers by content, one small JSON file each."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from prompts_agent.compile.outcome import CompiledFit

__all__ = ["cache_directory", "load", "program_path", "store"]


def cache_directory() -> Path:
    """`$PROMPTS_CACHE/compile`, else `$XDG_CACHE_HOME/prompts/compile`, by default in ~/.cache."""
    own = os.environ.get("PROMPTS_CACHE", "").strip()
    if own:
        return Path(own).expanduser() / "compile"
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "prompts" / "compile"


def load(key: str) -> CompiledFit | None:
    """The answer stored under `key`; None where there is none, or it cannot be read."""
    try:
        found = CompiledFit.model_validate_json(_path(key).read_bytes())
    except (OSError, ValidationError):
        return None
    return found.model_copy(update={"cached": True})


def store(key: str, fit: CompiledFit) -> None:
    """Write all or nothing. A cache that cannot be written is no reason to lose the answer."""
    path = _path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(fit.model_dump_json())
        Path(name).replace(path)
    except OSError:
        return


def program_path(key: str) -> Path:
    """Where the scheduled program of an answer is kept."""
    return _path(key).with_suffix(".hlo.pb.gz")


def _path(key: str) -> Path:
    # Two letters in front keep directories small.
    return cache_directory() / key[:2] / f"{key}.json"
