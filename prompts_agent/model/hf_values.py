"""Checked access to the keys of a config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from prompts_agent.errors import ModelError

__all__ = ["HfValues"]


class HfValues:
    """The keys of one config; `origin` names it in messages."""

    def __init__(self, data: Mapping[str, Any], origin: str) -> None:
        self._data = data
        self.origin = origin

    def with_defaults(self, defaults: Mapping[str, Any]) -> HfValues:
        """The same config, with `defaults` where a key is absent or null."""
        present = {key: value for key, value in self._data.items() if value is not None}
        return HfValues({**defaults, **present}, self.origin)

    def size(self, *keys: str, default: int | None = None) -> int:
        """A whole number of at least 1 under the first of `keys` that is there.

        Raises `ModelError` where none is and there is no default, or where the value is no such
        number.
        """
        for key in keys:
            value = self._data.get(key)
            if value is not None:
                return self._checked(key, value)
        if default is not None:
            return default
        raise ModelError(
            f"{self.origin} without {' or '.join(keys)}",
            rule="the architecture cannot be told without it",
            cure=f'Add "{keys[0]}".',
        )

    def optional_size(self, *keys: str) -> int | None:
        """Like `size`; None where every key is absent, null or 0."""
        for key in keys:
            value = self._data.get(key)
            if value is not None and value != 0:
                return self._checked(key, value)
        return None

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A boolean; null counts as absent."""
        value = self._data.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._refuse(key, value, "the value is true or false")
        return value

    def text(self, key: str, default: str) -> str:
        """A string; null counts as absent."""
        value = self._data.get(key)
        return default if value is None else str(value)

    def section(self, key: str) -> HfValues:
        """A nested object, empty where absent."""
        value = self._data.get(key)
        inner = value if isinstance(value, Mapping) else {}
        return HfValues(inner, f"{key} of {self.origin}")

    def items(self, key: str) -> list[Any]:
        """A list, empty where absent."""
        value = self._data.get(key)
        return list(value) if isinstance(value, list) else []

    def refuse(self, key: str, rule: str, cure: str) -> NoReturn:
        """Say that the value of `key` cannot be used."""
        raise ModelError(f"{key} = {self._data.get(key)!r} in {self.origin}", rule=rule, cure=cure)

    def _checked(self, key: str, value: Any) -> int:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole or value < 1:
            self._refuse(key, value, "a dim is a whole number of at least 1")
        return int(value)

    def _refuse(self, key: str, value: Any, rule: str) -> NoReturn:
        raise ModelError(f"{key} = {value!r} in {self.origin}", rule=rule, cure=f"Correct {key}.")
