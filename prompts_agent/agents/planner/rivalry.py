"""Why this layout and not the next: the terms in which two of the ranking differ, and ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prompts_agent.agents.planner.case import Case, Standing
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.planner.terms import is_part, moved_terms, term_words
from prompts_agent.agents.report import Reason
from prompts_agent.estimate.ranking import expert_order, tie_reason
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Objective

__all__ = ["TIE", "against_neighbours", "apart"]

TIE = 0.01
"""The ranking's own threshold (`prompts_agent.estimate.ranking`)."""

TIGHT = 0.9
"""Share of HBM that the upper memory estimate fills."""

_ADOPTED = "which meshes people adopted weighs in"
"""Besides time and the chance to fit, the ranking knows what was chosen in public cases."""

_JUDGED = " Their intervals overlap, and the language model set this order."

_RULES = {
    "whole experts": "whole experts on the ranks of a replica go first",
    "fewer axes": "the mesh with fewer axes goes first",
    "smaller tensor degree": "of the tensor axis the lowest degree goes first",
    "less change from the baseline": "the one nearer to today's layout goes first",
    "order of degrees": "the plain order of degrees decides",
}


def against_neighbours(candidate: Candidate, case: Case, standing: Standing) -> Iterator[Reason]:
    """One sentence against the best (or, for the best, against the second), and one about the
    layout just above where something else than the estimate set their order.
    """
    other, above = standing.other, standing.above
    if other is not None:
        better, worse = (candidate, other) if standing.first else (other, candidate)
        order = _JUDGED if standing.judged else _order(better, worse, case)
        yield from _difference(candidate, other, case, order, first=standing.first)
    if above is None:
        return
    if standing.judged_above:
        text = "Their intervals overlap; the language model put {above:name} before it."
        yield Reason(text=text, term_ids=_deciding(candidate, above, case))
        return
    if _surer_to_fit(above, candidate, case):
        text = "{above:name} goes before it because it is surer to fit."
        yield Reason(text=text, term_ids=_deciding(candidate, above, case))
    elif (rule := _tie(above, candidate, case)) is not None:
        text = f"With {{above:name}} it is tied, {{gap:tie_above}} apart: {rule}."
        yield Reason(text=text, term_ids=_deciding(candidate, above, case))
    elif _cost(candidate, case.objective) < _cost(above, case.objective):
        text = (
            "By the estimate alone it would go before {above:name} (by {gap:tie_above}); "
            f"{_ADOPTED}."
        )
        yield Reason(text=text, term_ids=_deciding(candidate, above, case))


def _order(better: Candidate, worse: Candidate, case: Case) -> str:
    """What set the order of the two, a sentence; empty where the estimate of the time did."""
    if _surer_to_fit(better, worse, case):
        return " The one that is surer to fit goes first."
    rule = _tie(better, worse, case)
    if rule is not None:
        return f" They are {{gap:tie}} apart, which is a tie: {rule}."
    if _cost(worse, case.objective) < _cost(better, case.objective):
        return (
            f" By the estimate alone the order would be the reverse (by {{gap:tie}}); {_ADOPTED}."
        )
    return ""


def _difference(
    candidate: Candidate, other: Candidate, case: Case, tie: str, *, first: bool
) -> Iterator[Reason]:
    """All that is saved and all that is lost, each with its largest term; the best layout names its
    savings first.
    """
    saved = moved_terms(candidate, other, case.objective, falls=True)
    lost = moved_terms(candidate, other, case.objective, falls=False)
    savings = [f"saves {{gap:saved}} {_most(saved)}"] if saved else []
    losses = [f"spends {{gap:lost}} more {_most(lost)}"] if lost else []
    ordered = savings + losses if first else losses + savings
    if not ordered and not tie:
        return
    joint = f"it {', but '.join(ordered)}" if ordered else "no term of the estimate differs"
    text = f"Against {{other:name}} {_rates(candidate, other, case)}{joint}.{tie}"
    largest = [*saved[:1], *lost[:1]] if first else [*lost[:1], *saved[:1]]
    ids = tuple(name for name, _ in largest)
    yield Reason(text=text, term_ids=ids or _deciding(candidate, other, case))


def _most(moved: Sequence[tuple[str, float]]) -> str:
    """`on waiting for tensor (0 s instead of 565 ms)`; of several terms the largest."""
    name = moved[0][0]
    most = "on" if len(moved) == 1 else "in all, most on"
    return f"{most} {term_words(name)} ({{term:{name}}} instead of {{other:{name}}})"


def _rates(candidate: Candidate, other: Candidate, case: Case) -> str:
    """Serving many requests: a longer step may still make more tokens, so both are said."""
    if case.is_training or case.objective in (Objective.LATENCY, Objective.FIT):
        return ""
    if candidate.predicted.tokens_per_s is None or other.predicted.tokens_per_s is None:
        return ""
    makes = "could make" if "load.utilisation" in candidate.terms else "makes"
    return f"it {makes} {{term:tokens_per_s}} instead of {{other:tokens_per_s}}; of a step "


def _deciding(candidate: Candidate, other: Candidate, case: Case) -> tuple[str, ...]:
    """The term that differs most; of equal ones the largest, so that a tie rests on something."""
    parts = [name for name in candidate.terms if is_part(name, case.objective)]

    def weight(name: str) -> tuple[float, float, str]:
        value = candidate.terms[name]
        return abs(value - other.terms.get(name, value)), value, name

    return (max(parts, key=weight),) if parts else ()


def apart(one: Candidate, two: Candidate, objective: Objective) -> float:
    """By which share of the better the two differ in what the objective asks for."""
    costs = sorted((_cost(one, objective), _cost(two, objective)))
    return costs[1] / costs[0] - 1.0 if costs[0] > 0.0 else 0.0


def _cost(candidate: Candidate, objective: Objective) -> float:
    """What the ranking wants small; see `prompts_agent.estimate.ranking`."""
    predicted = candidate.predicted
    if objective is Objective.FIT:
        return float(predicted.hbm_bytes)
    step = predicted.step_time_s or 0.0
    if objective is Objective.LATENCY:
        return step + candidate.terms.get("serving.ttft_s", 0.0)
    return 1.0 / predicted.tokens_per_s if predicted.tokens_per_s else step


def _surer_to_fit(better: Candidate, worse: Candidate, case: Case) -> bool:
    """The worse one is as quick or quicker, and nearer to the limit of memory.

    The ranking weighs time by the chance to fit, which is all but certain below TIGHT.
    """
    if case.objective is Objective.FIT:
        return False
    filled = worse.hbm_high_bytes / max(1, worse.predicted.hbm_limit_bytes)
    quicker = _cost(worse, case.objective) <= _cost(better, case.objective) * (1.0 + TIE)
    return filled > TIGHT and quicker and better.hbm_high_bytes < worse.hbm_high_bytes


def _tie(better: Candidate, worse: Candidate, case: Case) -> str | None:
    """The rule that set the order of two tied layouts; None where the estimate set it."""
    if apart(better, worse, case.objective) > TIE:
        return None
    serving = case.workload is not None and not case.workload.phase.is_training
    shared = serving and max(c.layout.mesh.size(Axis.EXPERT) for c in (better, worse)) > 1
    if _key(better.layout, shared) > _key(worse.layout, shared):
        # The rules would have it the other way: the two are in neighbouring groups of ties.
        return None
    today = case.today.layout if case.today is not None else None
    return _RULES[tie_reason(better.layout, worse.layout, today, serving=serving)]


def _key(layout: Layout, shared: bool) -> tuple[int, int, int]:
    """The first rules of the ranking; `shared` where a server's experts are at stake."""
    return (
        expert_order(layout) if shared else 0,
        len(layout.mesh.used()),
        layout.mesh.size(Axis.TENSOR),
    )
