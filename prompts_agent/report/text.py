"""Text that may hold names from a trace, made fit for one line of output."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from prompts_agent.agents.placeholders import format_fact
from prompts_agent.agents.report import Report
from prompts_agent.report.plain import LONGEST, plain
from prompts_agent.trace.profile import Fact

__all__ = ["LONGEST", "fact_values", "filled", "plain", "to_ascii"]

_PLACEHOLDER = re.compile(r"\{fact:([^{}\s]+)\}")
_ASCII = {
    "×": "x",
    "÷": "/",
    "→": "->",
    "–": "-",
    "—": "-",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "µ": "u",
    "·": "-",
    "•": "*",
    "✓": "+",
    "“": '"',
    "”": '"',
    "’": "'",
    "\ufffd": "?",
}


def to_ascii(text: str) -> str:
    """The nearest text of 7-bit characters; what has none becomes a question mark."""
    known = "".join(_ASCII.get(char, char) for char in text)
    decomposed = unicodedata.normalize("NFKD", known)
    bare = "".join(char for char in decomposed if not unicodedata.combining(char))
    return bare.encode("ascii", "replace").decode("ascii")


def fact_values(report: Report) -> dict[str, Fact]:
    """Facts by id."""
    return {fact.id: fact for fact in report.profile.facts} if report.profile else {}


def filled(text: str, facts: Mapping[str, Fact]) -> str:
    """`{fact:ID}` replaced by its value where the report holds it, and left as it is where not."""

    def value(match: re.Match[str]) -> str:
        fact = facts.get(match.group(1))
        return format_fact(fact) if fact is not None else match.group()

    return _PLACEHOLDER.sub(value, text)
