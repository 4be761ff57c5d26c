"""Sizes as people write them."""

from __future__ import annotations

import re

from prompts_agent.errors import InputError
from prompts_agent.units import GIB

__all__ = ["parse_size"]

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": GIB,
    "ti": 2**40,
}


def parse_size(text: str) -> int:
    """Bytes of `8GiB`, `500MB`, `2g`. Raises `InputError`.

    >>> parse_size("1.5KiB")
    1536
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?\s*", text, re.IGNORECASE)
    size = round(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    if size <= 0:
        raise InputError(
            f"size {text!r}", rule="a size is a number and a unit", cure="For example 8GiB."
        )
    return size
