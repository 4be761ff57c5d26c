"""Where a page goes: how wide, with which characters, in colour or not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import IO

from rich.console import Console
from rich.text import Text

from prompts_agent.report.text import plain, to_ascii

__all__ = ["PIPE_WIDTH", "Pen", "pen_of", "result_console"]

PIPE_WIDTH = 100
"""Columns where nobody's window sets them, so that a log looks the same on every machine."""
WIDEST = 120
"""Longer lines are hard to read."""


def result_console(stream: IO[str]) -> Console:
    """A console on `stream`: its own width on a terminal (at most 120), 100 columns elsewhere.

    rich itself honours NO_COLOR, FORCE_COLOR, TERM=dumb and COLUMNS. Highlighting, markup and emoji
    are off: every style on the page is chosen, none is guessed from text.
    """
    console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if console.is_terminal:
        console.width = min(console.width, WIDEST)
    elif "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


@dataclass(frozen=True, slots=True)
class Pen:
    """Writes text that is safe to show: scrubbed, never parsed as markup, in characters that the
    output has.
    """

    ascii_only: bool
    colour: bool

    def text(self, text: str, style: str = "") -> Text:
        """A styled piece of text."""
        return Text(self.safe(text), style=style)

    def safe(self, text: str) -> str:
        """The bare characters of `text`."""
        shown = plain(text)
        return to_ascii(shown) if self.ascii_only else shown

    def join(self, *pieces: Text | str, separator: str = "") -> Text:
        """Pieces in a row; strings are scrubbed like everything else."""
        joined = Text()
        for number, piece in enumerate(pieces):
            if number and separator:
                joined.append(self.safe(separator), "dim")
            joined.append_text(self.text(piece) if isinstance(piece, str) else piece)
        return joined


def pen_of(console: Console) -> Pen:
    """The pen for a console: ASCII unless its encoding is a Unicode one."""
    return Pen(
        ascii_only=not console.encoding.lower().startswith("utf"),
        colour=console.color_system is not None and not console.no_color,
    )
