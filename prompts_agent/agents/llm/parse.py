"""JSON out of whatever a model wrote around it: fences, thoughts, a sentence before or after."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["json_objects", "parse_object"]

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_MOST_STARTS = 200
"""Braces tried: text of nothing but braces must not take quadratic time."""


def parse_object(text: str) -> dict[str, Any] | None:
    """The largest JSON object in `text`; None where there is none.

    >>> parse_object('Sure, here it is: {"a": 1} Anything else?')
    {'a': 1}
    """
    found = json_objects(_THOUGHTS.sub(" ", text)) or json_objects(text)
    return max(found, key=lambda item: len(str(item)), default=None)


def json_objects(text: str) -> list[dict[str, Any]]:
    """Every JSON object that is not inside another one, in order."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    place, tried = text.find("{"), 0
    while place >= 0 and tried < _MOST_STARTS:
        tried += 1
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            found.append(value)
        place = text.find("{", end)
    return found
