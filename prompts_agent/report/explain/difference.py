"""Difference: why one layout of a report stands before another, term by term."""

from __future__ import annotations

from typing import Literal

from prompts_agent.agents.planner.terms import term_words
from prompts_agent.agents.report import RankFactors, Report
from prompts_agent.errors import InputError
from prompts_agent.estimate.formula import formula_of, is_total
from prompts_agent.layout.diff import changes
from prompts_agent.layout.layout import Layout
from prompts_agent.record import Record
from prompts_agent.report.explain.explanation import Ranked, phase_of, ranked, sum_title
from prompts_agent.workload.workload import Objective

__all__ = ["Difference", "DifferenceLine", "DifferenceSum", "Side", "difference"]

_TINY = 1e-12
"""Relative: what adding in another order leaves."""


class Side(Record):
    """One of the two layouts. `rank` 0: today's."""

    rank: int
    layout: Layout
    tokens_per_s: float | None = None
    factors: RankFactors | None = None


class DifferenceLine(Record):
    """A term of both; `difference` is second less first: what the first saves is above 0."""

    name: str
    words: str
    first: float
    second: float
    difference: float
    formula: str | None = None


class DifferenceSum(Record):
    """Terms that differ, largest difference first. `same` are the names of those that do not."""

    title: str
    unit: Literal["s", "bytes"]
    first: float
    second: float
    lines: tuple[DifferenceLine, ...]
    same: tuple[str, ...] = ()


class Difference(Record):
    """Two layouts of one report."""

    first: Side
    second: Side
    objective: Objective
    changes: tuple[str, ...]
    """Knobs and degrees from the first to the second, in words."""
    sums: tuple[DifferenceSum, ...]
    verdict: str


def difference(report: Report, first: int, second: int) -> Difference:
    """`first` and `second` are ranks, 0 is today's layout. Raises `InputError` for equal ones."""
    if first == second:
        raise InputError(
            f"--diff {first} {second}",
            rule="a layout does not differ from itself",
            cure="Give two ranks; 0 is today's layout.",
        )
    phase = phase_of(report)
    one, other = ranked(report, first), ranked(report, second)
    objective = report.workload.objective if report.workload else Objective.THROUGHPUT
    times = _sum(report, one, other, sum_title(phase), "s")
    memory = _sum(report, one, other, "Memory of a device", "bytes")
    return Difference(
        first=_side(one),
        second=_side(other),
        objective=objective,
        changes=tuple(
            f"{change.what}: {change.before} → {change.after}"
            for change in changes(one.layout, other.layout)
        ),
        sums=tuple(part for part in (times, memory) if part is not None),
        verdict=_verdict(one, other, objective, is_training=phase.is_training),
    )


def _side(one: Ranked) -> Side:
    return Side(
        rank=one.rank,
        layout=one.layout,
        tokens_per_s=one.predicted.tokens_per_s,
        factors=one.factors,
    )


def _sum(
    report: Report, one: Ranked, other: Ranked, title: str, unit: Literal["s", "bytes"]
) -> DifferenceSum | None:
    totals = [
        side.predicted.step_time_s if unit == "s" else float(side.predicted.hbm_bytes)
        for side in (one, other)
    ]
    first, second = totals
    if first is None or second is None:
        return None
    kinds = ("time.", "serving.") if unit == "s" else ("memory.",)
    names = [
        name
        for name in dict.fromkeys((*one.terms, *other.terms))
        if name.startswith(kinds) and not is_total(name)
    ]
    lines = [_line(report, name, one, other) for name in names]
    moved = [line for line in lines if abs(line.difference) > _TINY * max(first, second)]
    kept = [line for line in lines if line not in moved]
    return DifferenceSum(
        title=title,
        unit=unit,
        first=first,
        second=second,
        lines=tuple(sorted(moved, key=lambda line: (-abs(line.difference), line.name))),
        same=tuple(line.words for line in kept if line.first > 0.0),
    )


def _line(report: Report, name: str, one: Ranked, other: Ranked) -> DifferenceLine:
    before, after = one.terms.get(name, 0.0), other.terms.get(name, 0.0)
    found = formula_of(name, phase_of(report))
    return DifferenceLine(
        name=name,
        words=term_words(name).removeprefix("memory for "),
        first=before,
        second=after,
        difference=after - before,
        formula=found.text if found is not None else None,
    )


def _verdict(one: Ranked, other: Ranked, objective: Objective, *, is_training: bool) -> str:
    """What the order rests on, a sentence with its numbers."""
    a, b = _name(one), _name(other)
    if objective is Objective.FIT:
        less = other.predicted.hbm_bytes - one.predicted.hbm_bytes
        return f"The objective is fit: {a if less > 0 else b} needs less memory."
    if one.factors is None or other.factors is None:
        return f"By time alone {_faster(one, other, a, b)}."
    said = [_faster(one, other, a, b)]
    chances = one.factors.fit_probability, other.factors.fit_probability
    said.append(f"the chances to fit are {chances[0]:.1%} and {chances[1]:.1%}")
    if is_training:
        likes = one.factors.preference, other.factors.preference
        said.append(f"the preferences for such meshes are × {likes[0]:.3f} and × {likes[1]:.3f}")
    costs = [_cost(side, objective) for side in (one, other)]
    if None in costs:
        return "; ".join(said) + "."
    ratio = (costs[1] or 0.0) / (costs[0] or 1.0)
    said.append(
        f"time × preference ÷ chance makes {b} {abs(ratio - 1.0):.1%} "
        f"{'worse' if ratio >= 1.0 else 'better'} than {a}"
    )
    if abs(ratio - 1.0) < 0.01:
        said.append(
            "below 1 % fewer axes, a smaller tensor degree and less change from today decide"
        )
    elif ratio < 1.0 and one.rank < other.rank:
        said.append("the order was changed after the ranking, by the critic or a language model")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."


def _cost(side: Ranked, objective: Objective) -> float | None:
    """The ranking's own sum, up to a factor that both sides share."""
    factors, predicted = side.factors, side.predicted
    if factors is None:
        return None
    bad = predicted.step_time_s
    if objective is not Objective.LATENCY:
        bad = 1.0 / predicted.tokens_per_s if predicted.tokens_per_s else None
    elif bad is not None:
        bad += side.terms.get("serving.ttft_s", 0.0)
    return None if bad is None else bad * factors.preference / factors.fit_probability


def _faster(one: Ranked, other: Ranked, a: str, b: str) -> str:
    times = one.predicted.step_time_s, other.predicted.step_time_s
    rates = one.predicted.tokens_per_s, other.predicted.tokens_per_s
    if rates[0] and rates[1]:
        ratio, what = rates[0] / rates[1], "tokens per second"
    elif times[0] and times[1]:
        ratio, what = times[1] / times[0], "speed"
    else:
        return f"{a} and {b} have no times to compare"
    return f"{a} reaches {ratio:.3f} times the {what} of {b}"


def _name(side: Ranked) -> str:
    return f"proposal {side.rank}" if side.rank else "today's layout"
