"""Placeholders: where text gets its numbers from, and how a number without a source is found.

Text is written as `{fact:step_time}`, `{term:time.matmul_s}` or `{change:tensor}`; code fills in
the value. `fact` is an id of the profile; the kinds of FIGURES are handed over by the planner,
already formatted (`prompts_agent.agents.planner.figures` says what each is).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from prompts_agent.errors import InternalError
from prompts_agent.trace.profile import Fact
from prompts_agent.units import format_bytes, format_flops, format_seconds

__all__ = ["FIGURES", "fill", "format_fact", "placeholder_ids", "scrub", "unsupported_numbers"]

FIGURES = ("term", "today", "change", "other", "above", "gap", "recipe", "layout")
"""Kinds of placeholders besides `fact`."""

_PLACEHOLDER = re.compile(rf"\{{(fact|{'|'.join(FIGURES)}):([^{{}}\s]+)\}}")
_BRACED = re.compile(r"\{[^{}]*\}")

# Digits inside a word (`v5p`, `bf16`, `jit_f2`) name a thing, and are no claim; so do words that
# begin with one and hold another or end in d (`1f1b`, `8x8`, `2d`), but not `3e9` and `4chips`.
_NAME = re.compile(r"(?<![\w.])\d+(?:[a-df-z]+\d\w*|d)\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_UNIT = re.compile(
    r"(?:[GMTPk]i?B(?:/s)?|ms|µs|us|ns|ps|s|x|×|B|bytes?|seconds?|fold)(?![\w-])", re.IGNORECASE
)
_RATIO_WORDS = re.compile(
    r"\b(?:half|halve[sd]?|halving|twice|doubl(?:e[sd]?|ing)|tripl(?:e[sd]?|ing)|thrice"
    r"|quadrupl(?:e[sd]?|ing)|\w*fold|thirds?|quarters?|percent|per cent)\b",
    re.IGNORECASE,
)
_UNSAFE = re.compile(r"[^\w .,:;/+\-=()\[\]']")
_LONGEST_NAME = 80
_SHARES = (".share", ".efficiency", "mfu")
"""Facts of unit 1 whose ids end so are parts of a whole."""


def scrub(name: str) -> str:
    """A name from a trace as it may stand in text: one line, harmless characters, at most 80.

    Traces are written by others; a name must not be able to forge a line, a link or a placeholder.
    """
    plain = " ".join(_UNSAFE.sub(" ", name).split())
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"


def format_fact(fact: Fact) -> str:
    """The fact's value with its unit, for people: seconds, bytes, FLOP and shares are scaled."""
    value = fact.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return scrub(value)
    match fact.unit:
        case "s":
            return format_seconds(value)
        case "B":
            return format_bytes(value)
        case "B/s":
            return f"{format_bytes(value)}/s"
        case "FLOP" | "FLOP/s":
            return format_flops(value) + fact.unit
    if fact.id.endswith(_SHARES):
        return f"{100 * value:.1f} %"
    number = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return number if fact.unit in ("", "1") else f"{number} {fact.unit}"


def fill(text: str, facts: Iterable[Fact], figures: Mapping[str, str] | None = None) -> str:
    """`text` with every placeholder replaced by its value.

    `figures` maps what stands between the braces, `term:time.matmul_s`, to formatted text. Raises
    `InternalError` where an id is unknown: a sentence about a value that nobody measured.
    """
    by_id = {fact.id: fact for fact in facts}
    figures = figures or {}

    def value(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "fact" and name in by_id:
            return format_fact(by_id[name])
        if f"{kind}:{name}" in figures:
            return figures[f"{kind}:{name}"]
        raise InternalError(
            f"placeholder {match.group()}",
            rule="text may only refer to facts and figures that exist",
            cure="Report this sentence: " + text[:200],
        )

    return _PLACEHOLDER.sub(value, text)


def placeholder_ids(text: str, kind: str = "fact") -> tuple[str, ...]:
    """Ids of that kind that the text refers to, in order of appearance, each once."""
    names = (m.group(2) for m in _PLACEHOLDER.finditer(text) if m.group(1) == kind)
    return tuple(dict.fromkeys(names))


def _number(digits: str) -> float:
    return abs(float(digits.replace(",", "")))


def _numbers(text: str) -> set[float]:
    return {_number(m.group()) for m in _NUMBER.finditer(_split_units(text))}


def _split_units(text: str) -> str:
    """`16GB` → `16 GB`, so that a number glued to its unit is seen as a number."""
    return re.sub(rf"(?<=\d)(?={_UNIT.pattern})", " ", text, flags=re.IGNORECASE)


def unsupported_numbers(text: str, facts: Iterable[Fact] = ()) -> tuple[str, ...]:
    """Numbers in `text` that no placeholder gave and that no fact's printed value contains.

    Words that state a ratio ("twice", "halves", "tenfold") count as numbers. Full-width and other
    digits are read as what they mean.
    """
    plain = unicodedata.normalize("NFKC", _BRACED.sub(" ", text))
    bare = _NAME.sub(" ", _split_units(plain))
    known: set[float] = set()
    for fact in facts:
        known |= _numbers(format_fact(fact)) | _numbers(str(fact.value))
    found = [m.group() for m in _NUMBER.finditer(bare)]
    unsupported = [digits for digits in found if _number(digits) not in known]
    unsupported += [m.group() for m in _RATIO_WORDS.finditer(bare)]
    return tuple(dict.fromkeys(unsupported))
