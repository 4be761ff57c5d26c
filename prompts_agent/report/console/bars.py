"""Bars: where the step goes, and how full HBM is. Readable without colour and in ASCII."""

from __future__ import annotations

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.text import Text

from prompts_agent.report.breakdown import UNATTRIBUTED, StepParts, cells
from prompts_agent.report.console.terminal import Pen
from prompts_agent.report.figures import share
from prompts_agent.units import format_seconds

__all__ = ["fill_bar", "step_bar"]

STYLES = {
    "compute": "green",
    "exposed collective": "red",
    "host transfer": "magenta",
    "input": "yellow",
    "idle": "blue",
    UNATTRIBUTED: "dim",
}
# Without colour each part has a pattern of its own.
PATTERNS = {
    "compute": "█",
    "exposed collective": "▓",
    "host transfer": "╬",
    "input": "▒",
    "idle": "░",
    UNATTRIBUTED: "·",
}
ASCII_PATTERNS = {
    "compute": "#",
    "exposed collective": "X",
    "host transfer": "H",
    "input": "=",
    "idle": "-",
    UNATTRIBUTED: ".",
}
FULL_STYLES = ((0.95, "red"), (0.85, "yellow"), (0.0, "green"))


def step_bar(pen: Pen, parts: StepParts, width: int) -> RenderableType:
    """One stacked bar over `width` cells, and a legend; what is unknown is named as unknown."""
    known = [(label, seconds) for label, seconds in parts.parts if seconds is not None]
    sizes = cells([seconds for _, seconds in known], width)
    bar = Text(no_wrap=True)
    for (label, _), size in zip(known, sizes, strict=True):
        bar.append(_pattern(pen, label) * size, STYLES[label])
    total = parts.total_s or 0.0
    legend = [
        _entry(pen, label, f"{format_seconds(seconds)} {share(seconds / total)}")
        for label, seconds in known
        if seconds > 0 and total > 0
    ]
    none = [label for label, seconds in known if seconds == 0]
    unknown = [label for label, seconds in parts.parts if seconds is None]
    rows: list[RenderableType] = [bar, Columns(legend, padding=(0, 3), expand=False)]
    if none:
        rows.append(pen.text("none of it: " + ", ".join(none), "dim"))
    if unknown:
        rows.append(pen.text("unknown: " + ", ".join(unknown), "italic dim"))
    return Group(*rows)


def fill_bar(pen: Pen, value: float, width: int) -> Text:
    """How full something is: `███████▉░░`; above 85 % yellow, above 95 % red."""
    style = next(style for limit, style in FULL_STYLES if value >= limit)
    done = min(width, max(0, round(value * width)))
    full, empty = ("#", ".") if pen.ascii_only else ("█" if not pen.colour else "━", "░")
    if pen.colour and not pen.ascii_only:
        empty = "━"
    bar = Text(no_wrap=True)
    bar.append(full * done, style)
    bar.append(empty * (width - done), "dim")
    return bar


def _pattern(pen: Pen, label: str) -> str:
    if pen.ascii_only:
        return ASCII_PATTERNS[label]
    return "█" if pen.colour else PATTERNS[label]


def _entry(pen: Pen, label: str, figures: str) -> Text:
    mark = "■" if pen.colour and not pen.ascii_only else _pattern(pen, label)
    text = Text(no_wrap=True)
    text.append(f"{mark} ", STYLES[label])
    text.append(pen.safe(f"{label} "))
    text.append(pen.safe(figures.replace(" ", "\u00a0")), "bold")
    return text
