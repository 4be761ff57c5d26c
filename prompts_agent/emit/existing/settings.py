"""Settings: what a config file sets, key by key, with the line of each."""

from __future__ import annotations

import re
from typing import Literal

from prompts_agent.record import Record

__all__ = ["Entry", "Settings", "Value", "normal", "parsed"]

Value = bool | int | float | str | None

_INT = re.compile(r"[-+]?\d{1,18}")
_FLOAT = re.compile(r"[-+]?(\d{1,18}\.\d*|\.\d+|\d{1,18}(\.\d*)?[eE][-+]?\d{1,3})")
_WORDS: dict[str, Value] = {"true": True, "false": False, "none": None, "null": None}


class Entry(Record):
    """One setting. `key` is plain (`tensor_parallel_size`), `written` as the file spells it."""

    key: str
    value: Value
    line: int
    written: str


class Settings(Record):
    """A whole file. Of a key that comes twice the last entry counts, as it does to frameworks."""

    file: str
    form: Literal["yaml", "shell", "python", "toml"]
    entries: tuple[Entry, ...]
    words: tuple[tuple[str, int], ...] = ()
    """Shell: the words that are no flag and no assignment, with their lines, in order."""
    text: str

    def find(self, *keys: str) -> Entry | None:
        """The last entry of any of `keys`."""
        return next((entry for entry in reversed(self.entries) if entry.key in keys), None)


def normal(key: str) -> str:
    """`--tensor-parallel-size`, `cfg.model.tensor_parallel_size` → `tensor_parallel_size`."""
    return key.lstrip("-").rpartition(".")[2].replace("-", "_")


def parsed(text: str) -> Value:
    """A word's value: whole numbers, fractions, `true`, `none`; else the word itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
