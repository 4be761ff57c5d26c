"""An explanation, or a difference, as text of a given width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from prompts_agent.report.explain.difference import Difference, DifferenceLine, DifferenceSum
from prompts_agent.report.explain.explanation import Explanation, Sum, TermLine
from prompts_agent.report.figures import share, title
from prompts_agent.report.text import plain
from prompts_agent.units import format_bytes, format_flops, format_seconds

__all__ = ["amount", "difference_text", "explanation_text", "heading", "quantity", "total_text"]

_WIDE = 60
"""Columns from which a term's formula stands beside its value."""
_VALUE = 10
_SHARE = 6


def amount(value: float, unit: str) -> str:
    """`2.74 s`, `14.2 GB`, with a sign where it is below 0."""
    return format_seconds(value) if unit == "s" else format_bytes(value)


def quantity(value: float, unit: str) -> str:
    """The value of a symbol or constant."""
    if unit == "FLOP/s":
        return f"{format_flops(value)}FLOP/s"
    if unit == "B/s":
        return f"{format_bytes(value)}/s"
    if unit == "parameters":
        return f"{format_flops(value)}parameters".replace("Gp", "billion p").replace(
            "Mp", "million p"
        )
    text = f"{value:,.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.4g}"
    return f"{text} {unit}".rstrip()


def heading(found: Explanation) -> str:
    """`Proposal 1: fsdp 64 × tensor 4`."""
    name = f"Proposal {found.rank}" if found.rank else "Today's layout"
    return f"{name}: {title(found.layout)}"


def total_text(part: Sum) -> str:
    """The total with its bounds or its limit."""
    text = f"{part.title}: {amount(part.total, part.unit)}"
    if part.low is not None and part.high is not None:
        text += f" (90%: {amount(part.low, part.unit)} to {amount(part.high, part.unit)})"
    if part.limit is not None:
        text += f" of {amount(part.limit, part.unit)}"
    return text


def explanation_text(found: Explanation, width: int) -> str:
    """The whole sum: every term with its value, formula, constants and source."""
    lines = [*_wrapped(heading(found), width), *_wrapped(found.knobs, width, indent=2)]
    lines += _wrapped(found.workload, width, indent=2)
    values = {constant.name: constant.value for constant in found.constants}
    for part in found.sums:
        lines += ["", *_wrapped(total_text(part), width), ""]
        for term in part.terms:
            lines += _term(term, part.unit, values, width)
        if part.scale is not None:
            lines += _wrapped(f"× {part.scale:.3f} measured ÷ estimated of today", width, indent=2)
        lines += _wrapped(f"= {amount(part.total, part.unit)}", width, indent=2)
    lines += _others(found, width)
    if found.factors is not None:
        factors = found.factors
        said = (
            f"Ranked by the objective × {factors.preference:.3f} (preference for such meshes) ÷ "
            f"{factors.fit_probability:.3f} (chance that it fits)."
        )
        lines += ["", *_wrapped(said, width)]
    lines += _tables(found, width)
    for note in found.notes:
        lines += ["", *_wrapped(note, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _term(term: TermLine, unit: str, values: dict[str, float], width: int) -> Iterator[str]:
    """A term of 0 has its formula and source too, and no constants, which change nothing."""
    value = amount(term.value, unit)
    portion = share(term.share) if term.value > 0.0 else ""
    head = f"{value:>{_VALUE}} {portion:>{_SHARE}}  {plain(term.words)}"
    yield from _wrapped(head, width, hang=_VALUE + _SHARE + 3, keep=True)
    indent = _VALUE + _SHARE + 3 if width >= _WIDE else 4
    yield from _wrapped(term.formula, width, indent=indent)
    known = [f"{name} {values[name]:.4g}" for name in term.constants if name in values]
    if term.value > 0.0 and known:
        yield from _wrapped(f"with {', '.join(known)}", width, indent=indent)
    yield from _wrapped(f"[{term.source}]", width, indent=indent)


def _others(found: Explanation, width: int) -> Iterator[str]:
    for term in found.others:
        yield ""
        yield from _wrapped(
            f"{term.words}: {amount(term.value, 's')}: {term.formula} [{term.source}]", width
        )


def _tables(found: Explanation, width: int) -> Iterator[str]:
    if found.symbols:
        yield from ("", "Symbols", "")
    for symbol in found.symbols:
        head = f"{symbol.name} = {quantity(symbol.value, symbol.unit)}"
        yield from _wrapped(f"{head}: {symbol.meaning} [{symbol.source}]", width, indent=2, hang=6)
    if found.constants:
        yield from ("", "Constants", "")
    for constant in found.constants:
        text = f"{constant.name} = {constant.value:.4g} [{constant.source}]"
        yield from _wrapped(text, width, indent=2, hang=6)


def difference_text(found: Difference, width: int) -> str:
    """Why the first stands before the second; a minus is what the first has more of."""
    one, other = found.first, found.second
    lines = [
        *_wrapped(f"{_side(one.rank)}: {title(one.layout)}", width),
        *_wrapped(f"{_side(other.rank)}: {title(other.layout)}", width),
    ]
    if found.changes:
        lines += ["", *_wrapped(f"From the first to the second: {', '.join(found.changes)}", width)]
    lines += ["", *_wrapped(found.verdict, width)]
    for part in found.sums:
        lines += ["", *_sum(part, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _side(rank: int) -> str:
    return f"Proposal {rank}" if rank else "Today's layout"


def _sum(part: DifferenceSum, width: int) -> Iterator[str]:
    change = part.second - part.first
    first, second = (amount(value, part.unit) for value in (part.first, part.second))
    yield from _wrapped(
        f"{part.title}: {first} against {second}, {_signed(change, part.unit)}", width
    )
    yield ""
    for line in part.lines:
        yield from _difference_line(line, part.unit, width)
    if part.same:
        yield from _wrapped(f"The same in both: {', '.join(part.same)}.", width, indent=2)


def _difference_line(line: DifferenceLine, unit: str, width: int) -> Iterator[str]:
    change = _signed(line.difference, unit)
    values = f"{amount(line.first, unit)} against {amount(line.second, unit)}"
    yield from _wrapped(
        f"{change:>{_VALUE + 1}}  {plain(line.words)}: {values}", width, hang=_VALUE + 3, keep=True
    )


def _signed(value: float, unit: str) -> str:
    sign = "+" if value > 0.0 else "-" if value < 0.0 else ""
    return f"{sign}{amount(abs(value), unit)}"


def _wrapped(
    text: str, width: int, *, indent: int = 0, hang: int | None = None, keep: bool = False
) -> Sequence[str]:
    """Lines of at most `width` columns; `keep` leaves the text's own spaces at its start."""
    after = " " * min(indent if hang is None else hang, max(0, width - 20))
    first = " " * indent
    if keep:
        stripped = text.lstrip(" ")
        first, text = text[: len(text) - len(stripped)], stripped
    found = textwrap.wrap(
        text,
        max(width, 20),
        initial_indent=first,
        subsequent_indent=after,
        break_on_hyphens=False,
    )
    return found or [""]
