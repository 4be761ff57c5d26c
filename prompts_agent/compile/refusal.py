"""Refusal: the compiler's own words about memory, read for the need and the limit."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Refusal", "read_refusal"]

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = r"([\d.]+)([KMGT]?)i?B?"
_FORMS = (
    # libtpu 0.0.42 to 0.0.52.
    re.compile(rf"required for HLO temporaries \({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
    # Older libtpu, and refusals for arguments alone.
    re.compile(rf"Used {_SIZE} of {_SIZE} hbm"),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the program needs and what there is, in bytes, to the digits that are printed."""

    need_bytes: int
    limit_bytes: int


def read_refusal(text: str) -> Refusal | None:
    """The need and the limit in a refusal for lack of HBM; None for any other text.

    >>> read_refusal("Used 33.25G of 30.75G hbm.").limit_bytes / 2**30
    30.75
    """
    for form in _FORMS:
        match = form.search(text)
        if match:
            need, need_unit, limit, limit_unit = match.groups()
            return Refusal(
                need_bytes=round(float(need) * _UNITS[need_unit]),
                limit_bytes=round(float(limit) * _UNITS[limit_unit]),
            )
    return None
