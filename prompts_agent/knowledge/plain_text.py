"""Plain text: what a recipe may hold, so that its text stays data wherever it is shown.

A terminal obeys escape sequences, a browser obeys tags, and characters without width hide words
from the person who reviews a recipe but not from a language model that is given it. Sentences that
read like instructions are left alone: nothing here acts on text, and models get it as quotation.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

__all__ = ["PlainLine", "PlainText", "hidden", "markup"]

_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks of category Lo and Mn that show nothing: fillers and variation selectors."""
_MARKUP = re.compile(r"<[A-Za-z/!?]|&(?:#\d|#[xX]|[A-Za-z]+;)|(?i:javascript|data|vbscript):\S")
_LINE_FEED: Final = "\n"


def hidden(text: str) -> str | None:
    """The first character that a reader cannot see or a terminal obeys, as U+XXXX; None: none.

    Line feeds are allowed. Python calls the categories Cc, Cf, Co, Cs, Cn, Zl, Zp and all spaces
    but the usual one unprintable.
    """
    blank = None if text.isascii() else _BLANK.search(text)
    if blank is None and text.replace(_LINE_FEED, "").isprintable():
        return None
    odd = (c for c in text if c != _LINE_FEED and (not c.isprintable() or _BLANK.match(c)))
    return f"U+{ord(next(odd)):04X}"


def markup(text: str) -> str | None:
    """The first HTML tag, entity or script address; None: none. `a < b` is none."""
    found = _MARKUP.search(text) if any(mark in text for mark in "<&:") else None
    return None if found is None else text[found.start() : found.start() + 20]


def _plain(text: str) -> str:
    character = hidden(text)
    if character is not None:
        raise _error(
            character,
            "a recipe has no control, invisible or private characters",
            "Delete the character; indent by spaces.",
        )
    tag = markup(text)
    if tag is not None:
        raise _error(
            repr(tag),
            "a recipe has no HTML and no script",
            "Use Markdown, and a space after < in formulas.",
        )
    return text


def _one_line(text: str) -> str:
    if _LINE_FEED in _plain(text).strip() or not text.strip():
        raise _error(repr(text[:40]), "it is one line of text", "Write it on one line, not empty.")
    return text


def _error(value: str, rule: str, cure: str) -> PydanticCustomError:
    context = {"rule": rule, "cure": cure, "at": "", "value": value}
    return PydanticCustomError("recipe_rule", "{rule}", context)


PlainText = Annotated[str, AfterValidator(_plain)]
"""Any number of lines."""
PlainLine = Annotated[str, AfterValidator(_one_line)]
