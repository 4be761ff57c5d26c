"""FlagsRequest: which flags to offer to which compiler."""

from __future__ import annotations

from prompts_agent.compile.target import Target
from prompts_agent.record import Record

__all__ = ["FlagsRequest"]


class FlagsRequest(Record):
    """Flags by name, without dashes."""

    flags: dict[str, str]
    target: Target
    compiler: str
