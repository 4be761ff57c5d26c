"""The gate for a model's sentences: only ids for values, nothing unknown, nothing contrary.

A sentence names values as `{fact:step_time}` or `{term:time.matmul_s}`; code fills them in. What
comes out is one line of harmless characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from prompts_agent.agents.critic.claims import contradicted
from prompts_agent.agents.critic.evidence import RecipeMoves, recipe_conflicts
from prompts_agent.agents.placeholders import unsupported_numbers
from prompts_agent.agents.report import Change

__all__ = ["Gate", "Ruling", "clean"]

LONGEST = 600
"""Characters of one sentence, placeholders included."""

_PLACEHOLDER = re.compile(r"\{\s*([a-z][a-z0-9]*):\s*([^{}\s]+)\s*\}")
_BRACE = re.compile(r"[{}]")
_LINK = re.compile(
    r"://|\bwww\.|\]\(|<\s*[/!a-z]|(?<!\w)@\w|\bjavascript:|\bmailto:", re.IGNORECASE
)
_DECORATION = re.compile(r"[*`#~|\\<>\[\]^$]|(?<!\w)_+|_+(?!\w)")
_DIGITS = re.compile(r"[\w.\-+/×]*\d[\w.\-+/×%]*")
_NUMBER_WORDS = re.compile(
    r"\b(?:two|three) times\b|\b(?:four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty"
    r"|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?"
    r"|dozens?)\b",
    re.IGNORECASE,
)


def clean(text: str) -> str:
    """One line: no control, format, private or surrogate characters, no Markdown decoration.

    >>> clean("**Wait** for   `tensor`")
    'Wait for tensor'
    """
    plain = "".join(
        " " if char.isspace() or unicodedata.category(char).startswith("C") else char
        for char in unicodedata.normalize("NFC", text)
    )
    return " ".join(_DECORATION.sub(" ", plain).split())


@dataclass(frozen=True, slots=True)
class Ruling:
    """A sentence with its values filled in, or the reason why it does not stand."""

    text: str = ""
    marked: str = ""
    """The sentence with its placeholders, as a model may see it again."""
    reason: str | None = None
    """A few fixed words."""
    detail: str = ""
    ids: tuple[tuple[str, str], ...] = ()
    """Kind and real id of everything that it refers to."""

    @property
    def stands(self) -> bool:
        """Nothing was wrong."""
        return self.reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What sentences may refer to."""

    values: Mapping[str, str]
    """`fact:step_time` → `1.2 s`, `recipe:r1` → its title: every placeholder and its text."""
    real: Mapping[str, str] = field(default_factory=dict)
    """`recipe:r1` → the id behind it, where the model was given another one."""
    names: frozenset[str] = frozenset()
    """Words that hold digits and name a thing: `v5e`, `bf16`."""
    changes: tuple[Change, ...] | None = None
    """Of the layout that the sentences are about; None where they are about none."""
    moves: RecipeMoves = field(default_factory=dict)

    def rule(self, text: object) -> Ruling:
        """The ruling on one sentence."""
        if not isinstance(text, str) or not any(char.isalpha() for char in text):
            return Ruling(reason="empty")
        if len(text) > LONGEST:
            return Ruling(reason="too long", detail=f"{len(text)} characters")
        if _LINK.search(unicodedata.normalize("NFKC", text)):
            return Ruling(reason="markup or link")
        marked = clean(text)
        found = [(m.group(1), m.group(2)) for m in _PLACEHOLDER.finditer(marked)]
        unknown = [f"{kind}:{name}" for kind, name in found if f"{kind}:{name}" not in self.values]
        rest = _PLACEHOLDER.sub(" it ", marked)
        if unknown or _BRACE.search(rest):
            return Ruling(reason="unknown id", detail=", ".join(unknown)[:100] or "stray brace")
        numbers = self._numbers(rest)
        if numbers:
            return Ruling(reason="number without a source", detail=", ".join(numbers)[:100])
        ids = tuple((kind, self.real.get(f"{kind}:{name}", name)) for kind, name in found)
        against = self._against(rest, ids)
        if against:
            return Ruling(reason="contradicts the layout", detail=against[0][:200])
        filled = _PLACEHOLDER.sub(lambda m: self.values[f"{m.group(1)}:{m.group(2)}"], marked)
        return Ruling(text=filled, marked=marked, ids=tuple(dict.fromkeys(ids)))

    def _numbers(self, text: str) -> list[str]:
        plain = unicodedata.normalize("NFKC", text)
        found = []
        for match in _DIGITS.finditer(plain):
            word = match.group().strip(".,-+/×").lower()
            if word not in self.names:
                found.append(word)
        bare = _DIGITS.sub(" ", plain)
        found += [match.group() for match in _NUMBER_WORDS.finditer(bare)]
        return [*found, *unsupported_numbers(bare)]

    def _against(self, text: str, ids: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
        if self.changes is None:
            return ()
        recipes = tuple(name for kind, name in ids if kind == "recipe")
        return (
            *contradicted(text, self.changes),
            *recipe_conflicts(recipes, self.changes, self.moves),
        )
