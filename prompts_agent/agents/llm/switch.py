"""Switch: whether a model is named anywhere, told without loading what asks one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from prompts_agent.agents.llm.settings_file import Settings, read_settings

__all__ = ["PREFIX", "is_on", "model_named"]

PREFIX = "PROMPTS_LLM_"


def is_on(flag: str | None, environment: Mapping[str, str], directory: Path) -> bool:
    """A flag, the environment or the nearest file names a model."""
    return model_named(flag, environment, read_settings(directory)) is not None


def model_named(
    flag: str | None, environment: Mapping[str, str], settings: Settings
) -> tuple[str, str] | None:
    """The model, and what named it: the flag, else the environment, else the file."""
    if flag is not None:
        return flag.strip(), "--llm"
    if named := environment.get(f"{PREFIX}MODEL", "").strip():
        return named, f"{PREFIX}MODEL"
    if (named := str(settings.values.get("model", "")).strip()) and settings.path is not None:
        return named, str(settings.path)
    return None
