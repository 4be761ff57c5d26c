"""Names that somebody else gave, made fit for one line of output."""

from __future__ import annotations

import unicodedata

__all__ = ["LONGEST", "plain"]

LONGEST = 2000
"""Characters of one sentence; a name of a megabyte must not fill the screen."""


def plain(text: str) -> str:
    """One line without control, format, surrogate and private characters; each becomes U+FFFD.

    That takes the sting out of escape sequences, of direction overrides and of zero-width
    characters; what follows an escape stays, as the letters it is.
    """
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    shown = (
        " " if char.isspace() else "\ufffd" if unicodedata.category(char).startswith("C") else char
        for char in text
    )
    return "".join(shown)
