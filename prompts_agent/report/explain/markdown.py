"""An explanation, or a difference, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from prompts_agent.report.explain.difference import Difference
from prompts_agent.report.explain.explanation import Explanation
from prompts_agent.report.explain.text import amount, heading, quantity, total_text
from prompts_agent.report.figures import share, title
from prompts_agent.report.markdown import escaped

__all__ = ["difference_markdown", "explanation_markdown"]


def explanation_markdown(found: Explanation) -> str:
    """The whole sum as tables."""
    lines = [f"# {escaped(heading(found))}", "", escaped(found.workload), ""]
    lines += [escaped(found.knobs), ""]
    for part in found.sums:
        lines += [f"## {escaped(total_text(part))}", ""]
        lines += ["| value | share | term | formula | source |", "|--:|--:|---|---|---|"]
        for term in part.terms:
            portion = share(term.share) if term.value > 0.0 else ""
            cells = (amount(term.value, part.unit), portion, term.words, term.formula, term.source)
            lines.append(_row(*cells))
        if part.scale is not None:
            scaled = f"× {part.scale:.3f}"
            lines.append(_row(scaled, "", "measured ÷ estimated of today", "", ""))
        lines += [_row(amount(part.total, part.unit), "", "total", "", ""), ""]
    lines += _notes(found)
    lines += _tables(found)
    return "\n".join(lines).rstrip() + "\n"


def _notes(found: Explanation) -> Iterator[str]:
    for term in found.others:
        value = amount(term.value, "s")
        yield escaped(f"{term.words}: {value}: {term.formula} ({term.source})")
        yield ""
    if found.factors is not None:
        factors = found.factors
        yield (
            f"Ranked by the objective × {factors.preference:.3f} (preference for such meshes) ÷ "
            f"{factors.fit_probability:.3f} (chance that it fits)."
        )
        yield ""
    for note in found.notes:
        yield escaped(note)
        yield ""


def _tables(found: Explanation) -> Iterator[str]:
    if found.symbols:
        yield from ("## Symbols", "", "| symbol | value | meaning | source |", "|---|--:|---|---|")
        for one in found.symbols:
            yield _row(one.name, quantity(one.value, one.unit), one.meaning, one.source)
        yield ""
    if found.constants:
        yield from ("## Constants", "", "| constant | value | source |", "|---|--:|---|")
        for constant in found.constants:
            yield _row(constant.name, f"{constant.value:.4g}", constant.source)


def difference_markdown(found: Difference) -> str:
    """Both layouts, and their terms, largest difference first."""
    sides = [
        (f"Proposal {side.rank}" if side.rank else "Today's layout", title(side.layout))
        for side in (found.first, found.second)
    ]
    lines = [f"# {escaped(sides[0][0])} against {escaped(sides[1][0].lower())}", ""]
    lines += [f"- {name}: {escaped(mesh)}" for name, mesh in sides]
    if found.changes:
        lines.append(f"- From the first to the second: {escaped(', '.join(found.changes))}")
    lines += ["", escaped(found.verdict), ""]
    for part in found.sums:
        first, second = (amount(value, part.unit) for value in (part.first, part.second))
        lines += [f"## {escaped(part.title)}: {first} against {second}", ""]
        lines += ["| difference | term | first | second |", "|--:|---|--:|--:|"]
        for line in part.lines:
            sign = "+" if line.difference > 0.0 else "-"
            change = f"{sign}{amount(abs(line.difference), part.unit)}"
            values = (amount(line.first, part.unit), amount(line.second, part.unit))
            lines.append(_row(change, line.words, *values))
        lines.append("")
        if part.same:
            lines += [f"The same in both: {', '.join(part.same)}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(escaped(cell) for cell in cells)} |"
