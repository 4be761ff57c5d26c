"""Places: where records and checkpoints lie on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["state_directory"]


def state_directory(environment: Mapping[str, str] | None = None) -> Path:
    """`$XDG_STATE_HOME/prompts`, or `~/.local/state/prompts`."""
    env = os.environ if environment is None else environment
    named = env.get("XDG_STATE_HOME", "").strip()
    return (Path(named) if named else Path.home() / ".local" / "state") / "prompts"
