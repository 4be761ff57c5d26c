"""Where the data that a person edits lies: in the wheel, or at the top of a checkout."""

from __future__ import annotations

from pathlib import Path

from prompts_agent.errors import InternalError

__all__ = ["data_directory"]

_PACKAGE = Path(__file__).resolve().parent


def data_directory(name: str) -> Path:
    """The directory `name` (`knowledge_base` or `workloads`) that came with this installation.

    A wheel carries it as `prompts_agent/_data/<name>`; an editable install or a checkout has it
    beside the package. Raises `InternalError` where neither exists.
    """
    for directory in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if directory.is_dir():
            return directory
    raise InternalError(
        f"no directory {name!r} in this installation",
        rule="the wheel ships knowledge_base/ and workloads/",
        cure="Reinstall the package.",
    )
