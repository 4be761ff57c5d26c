"""Reader: how one framework's settings become an `Existing`; and the taking of settings by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from prompts_agent.emit.existing.existing import Existing, Fault, Unknown
from prompts_agent.emit.existing.settings import Entry, Settings

__all__ = ["Reader", "Taking"]

_LARGEST = 10_000_000
"""More than any degree, batch, vocabulary or sequence of a real job."""

_IDLE = (1, -1, 0, False, None, "", "null")
"""Values of a key that switch nothing on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """`name` is the framework's. `words` and `keys` tell its files from those of others: any of
    the words in the text (a pattern), and keys that only it has.
    """

    name: str
    words: str
    keys: frozenset[str]
    read: Callable[[Settings], Existing]

    def evidence(self, settings: Settings) -> int:
        """How much of the file is this framework's: its words count most."""
        named = 10 * bool(re.search(self.words, settings.text))
        return named + len({entry.key for entry in settings.entries} & self.keys)


@dataclass(slots=True)
class Taking:
    """Takes settings by name, and remembers where each was and what could not be understood."""

    settings: Settings
    lines: dict[str, int] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    unknown: list[Unknown] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)

    def entry(self, role: str, *keys: str) -> Entry | None:
        """The entry of any of `keys`, noted as `role` (an axis, a knob, a field)."""
        self._taken |= set(keys)
        found = self.settings.find(*keys)
        if found is not None:
            self.lines[role] = found.line
            self.written[role] = found.written
            self.values[role] = str(found.value)
        return found

    def number(self, role: str, *keys: str, smallest: int = 1) -> int | None:
        """A whole number; -1 too where `smallest` allows. What is none is unknown or a fault."""
        found = self.entry(role, *keys)
        if found is None or found.value is None:
            return None
        value = found.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.not_understood(found, "not a number that the file itself gives")
            return None
        if not smallest <= value <= _LARGEST or value == 0:
            cure = f"Write a number from 1 to {_LARGEST}."
            self.fault(role, "size", f"{found.written} is {value}", cure)
            return None
        return value

    def fraction(self, role: str, *keys: str) -> float | None:
        """A number above 0."""
        found = self.entry(role, *keys)
        if found is None:
            return None
        if isinstance(found.value, int | float) and not isinstance(found.value, bool):
            return float(found.value) if found.value > 0 else None
        self.not_understood(found, "not a number that the file itself gives")
        return None

    def text(self, role: str, *keys: str) -> str | None:
        """A word; numbers are words too."""
        found = self.entry(role, *keys)
        return None if found is None or found.value is None else str(found.value)

    def switch(self, role: str, *keys: str) -> bool | None:
        """True or False; None where the file does not say."""
        found = self.entry(role, *keys)
        if found is None:
            return None
        if isinstance(found.value, bool):
            return found.value
        self.not_understood(found, "not true or false")
        return None

    def choice(self, role: str, table: Mapping[str, str], *keys: str) -> str | None:
        """The table's word for the value; a value that is not in it is unknown."""
        found = self.entry(role, *keys)
        if found is None or found.value is None:
            return None
        value = table.get(str(found.value).lower())
        if value is None:
            self.not_understood(found, "no layout here has this value")
        return value

    def not_understood(self, entry: Entry, why: str) -> None:
        """Note a setting as unknown."""
        self.unknown.append(
            Unknown(line=entry.line, key=entry.written, value=str(entry.value), why=why)
        )

    def fault(self, role: str, rule: str, text: str, cure: str, *, note: bool = False) -> None:
        """Note a fault at the line of `role`."""
        line = self.lines.get(role, 0)
        self.faults.append(Fault(line=line, rule=rule, text=text, cure=cure, note=note))

    def rest(self, like: str) -> None:
        """Note as unknown every other setting of such a key, unless its value does nothing."""
        for entry in self.settings.entries:
            idle = any(entry.value is idle or entry.value == idle for idle in _IDLE)
            if entry.key not in self._taken and not idle and re.search(like, entry.key):
                self.not_understood(entry, "not part of a layout here")

    def existing(self, **fields: object) -> Existing:
        """Everything taken, with the fields that the reader made of it."""
        return Existing.model_validate(
            {
                "file": self.settings.file,
                "lines": self.lines,
                "written": self.written,
                "values": self.values,
                "form": self.settings.form,
                "unknown": tuple(sorted(self.unknown, key=lambda item: item.line)),
                "faults": tuple(self.faults),
            }
            | fields
        )
