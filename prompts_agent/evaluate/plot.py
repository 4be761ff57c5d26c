"""Plots as SVG, written by hand: estimate against measurement, and regret beside the baselines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from prompts_agent.evaluate.score import ADVISOR, Score
from prompts_agent.evaluate.summary import Section

__all__ = ["plots", "regret_bars", "scatter"]

_SIZE, _LEFT, _TOP = 420, 60, 30
_COLOURS = {"tpu": "#0072b2", "gpu": "#d55e00"}  # told apart by the colour-blind as well


def plots(sections: Sequence[Section], scores: Sequence[Score]) -> dict[str, str]:
    """File name → SVG; what has no data has no plot."""
    found = {}
    for quantity in ("step time", "throughput", "ttft", "tpot"):
        points = [
            (p.measured, p.estimated, s.tags.platform)
            for s in scores
            for p in s.points
            if p.quantity == quantity and p.measured > 0 and p.estimated > 0
        ]
        if points:
            unit = "tokens/s" if quantity == "throughput" else "s"
            found[f"{quantity.replace(' ', '-')}.svg"] = scatter(f"{quantity}, {unit}", points)
    for section in sections:
        bars = regret_bars(section)
        if bars is not None:
            name = section.name.replace(", ", "-").replace(" ", "-").replace("/", "-")
            found[f"regret-{name}.svg"] = bars
    return found


def scatter(title: str, points: Sequence[tuple[float, float, str]]) -> str:
    """Both axes logarithmic and equal; the line is where estimate and measurement agree."""
    values = [value for x, y, _ in points for value in (x, y)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    span = _SIZE - _LEFT - _TOP

    def at(value: float) -> float:
        return (math.log10(value) - low) / (high - low) * span

    body = [_text(_SIZE / 2, 18, title, anchor="middle")]
    for power in range(low, high + 1):
        place = at(10.0**power)
        body.append(_text(_LEFT + place, _SIZE - _LEFT + 46, f"1e{power}", anchor="middle"))
        body.append(_text(_LEFT - 6, _TOP + span - place + 4, f"1e{power}", anchor="end"))
        for x1, y1, x2, y2 in (
            (_LEFT + place, _TOP, _LEFT + place, _TOP + span),
            (_LEFT, _TOP + place, _LEFT + span, _TOP + place),
        ):
            body.append(_line(x1, y1, x2, y2, "#ddd"))
    body.append(_line(_LEFT, _TOP + span, _LEFT + span, _TOP, "#000"))
    for x, y, platform in points:
        cx, cy = _LEFT + at(x), _TOP + span - at(y)
        colour = _COLOURS.get(platform, "#000")
        body.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="1.6" fill="{colour}"/>')
    body.append(_text(_LEFT + span / 2, _SIZE - 2, "measured", anchor="middle"))
    body.append(_text(4, 18, "estimated"))
    for k, (platform, colour) in enumerate(_COLOURS.items()):
        body.append(_text(_SIZE - 40, 18 + 14 * k, platform, colour=colour))
    return _svg(_SIZE, _SIZE, body)


def regret_bars(section: Section) -> str | None:
    """Regret of the first choice, a bar a method; None where the section has no sweep."""
    table = next((t for t in section.tables if t.title == "Measured sweeps"), None)
    if table is None or "regret of first" not in table.columns:
        return None
    column = table.columns.index("regret of first")
    bars = [
        (line.name, figure) for line in table.lines if (figure := line.figures[column]) is not None
    ]
    # Random can be a hundred times worse than all others: longer bars are cut and say so.
    longest = max(0.01, min(1.0, max(figure.value for _, figure in bars)))
    body = [_text(10, 18, f"Regret of the first choice: {section.name}")]
    for k, (name, figure) in enumerate(bars):
        y = 36 + 22 * k
        width = 300 * min(figure.value, longest) / longest
        colour = "#0072b2" if name == ADVISOR else "#999"
        cut = " (cut)" if figure.value > longest else ""
        body.append(_text(150, y + 12, name, anchor="end"))
        body.append(f'<rect x="156" y="{y}" width="{width:.1f}" height="16" fill="{colour}"/>')
        body.append(_text(162 + width, y + 12, f"{figure.value:.1%}{cut}"))
    return _svg(560, 46 + 22 * len(bars), body)


def _svg(width: int, height: int, body: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">'
    )
    return "\n".join(
        [head, f'<rect width="{width}" height="{height}" fill="#fff"/>', *body, "</svg>\n"]
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = "#000") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(text)}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
