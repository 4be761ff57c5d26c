"""What a batch needs beyond the package itself, imported with a message where it is missing."""

from __future__ import annotations

import importlib
from typing import Any

from prompts_agent.errors import SettingError

__all__ = ["duckdb", "fsspec", "needs", "pyarrow_parquet", "ray"]


def needs(module: str, what: str, extra: str) -> Any:
    """The module. Raises `SettingError` that names the extra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SettingError(
            f"{what} needs {module.partition('.')[0]}, which is not installed ({error})",
            rule=f"it comes with the extra [{extra}]",
            cure=f"pip install 'prompts-agent[{extra}]'",
        ) from error


def pyarrow_parquet() -> Any:
    """`pyarrow.parquet`."""
    return needs("pyarrow.parquet", "Parquet", "batch")


def duckdb() -> Any:
    """`duckdb`."""
    return needs("duckdb", "a question about a batch", "batch")


def fsspec() -> Any:
    """`fsspec`."""
    return needs("fsspec", "an address that is no local path", "batch")


def ray() -> Any:
    """`ray`."""
    return needs("ray", "--executor ray", "ray")
