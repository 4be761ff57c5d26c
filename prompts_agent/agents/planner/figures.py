"""Figures: the formatted values that a draft's placeholders stand for, all worked out by code.

- `term:NAME` and `today:NAME`: terms of the candidate and of today's layout, and besides them
  `step_time`, `step_low`, `step_high`, `hbm`, `tokens_per_s`, and `speedup` with its bounds;
- `other:NAME`: the same of the layout it is compared with; `other:name` and `above:name` are what
  the neighbours are called;
- `gap:saved` and `gap:lost`: sums of the terms that are smaller, or larger, than the other's;
  `gap:tie` and `gap:tie_above`: by which share two layouts differ in what the objective asks for;
- `change:WHAT`: before → after; `recipe:ID`: a recipe's title;
- `layout:NAME`: what follows from the layout itself (`prompts_agent.agents.planner.bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prompts_agent.agents.planner.bounds import bounds
from prompts_agent.agents.planner.case import Case, Standing
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.planner.rivalry import apart
from prompts_agent.agents.planner.terms import moved_terms
from prompts_agent.agents.report import Change
from prompts_agent.units import format_bytes, format_seconds
from prompts_agent.workload.workload import Objective

__all__ = ["figures"]


def figures(
    candidate: Candidate, case: Case, changes: Sequence[Change], standing: Standing
) -> dict[str, str]:
    """Everything that a sentence about the candidate may refer to."""
    found = _of("term", candidate)
    found |= {f"recipe:{recipe_id}": f"“{title}”" for recipe_id, title in case.titles.items()}
    found |= {f"layout:{name}": text for name, text in bounds(candidate, case.workload).items()}
    if case.today is not None:
        found |= _of("today", case.today)
    if standing.other is not None:
        found |= _of("other", standing.other) | _gaps(candidate, standing.other, case.objective)
        found["other:name"] = str(standing.other.layout)
        found["gap:tie"] = _share(apart(candidate, standing.other, case.objective))
    if standing.above is not None:
        found["above:name"] = str(standing.above.layout)
        found["gap:tie_above"] = _share(apart(candidate, standing.above, case.objective))
    for change in changes:
        before = "" if change.before is None else f"{change.before} → "
        found[f"change:{change.what}"] = f"{before}{change.after}"
    return found


def _of(kind: str, candidate: Candidate) -> dict[str, str]:
    found = {f"{kind}:{name}": _text(name, value) for name, value in candidate.terms.items()}
    predicted = candidate.predicted
    times: Mapping[str, float | None] = {
        "step_time": predicted.step_time_s,
        "step_low": predicted.low_s,
        "step_high": predicted.high_s,
    }
    ratios: Mapping[str, float | None] = {
        "speedup": predicted.speedup,
        "speedup_low": predicted.speedup_low,
        "speedup_high": predicted.speedup_high,
    }
    found |= {f"{kind}:{n}": format_seconds(v) for n, v in times.items() if v is not None}
    found |= {f"{kind}:{n}": f"{v:.2f}×" for n, v in ratios.items() if v is not None}
    if predicted.tokens_per_s is not None:
        found[f"{kind}:tokens_per_s"] = f"{predicted.tokens_per_s:,.0f} tokens/s"
    found[f"{kind}:hbm"] = format_bytes(predicted.hbm_bytes)
    return found


def _gaps(candidate: Candidate, other: Candidate, objective: Objective) -> dict[str, str]:
    form = format_bytes if objective is Objective.FIT else format_seconds
    sums = {
        name: sum(gap for _, gap in moved_terms(candidate, other, objective, falls=falls))
        for name, falls in (("saved", True), ("lost", False))
    }
    return {f"gap:{name}": form(value) for name, value in sums.items()}


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _text(name: str, value: float) -> str:
    if name.endswith("_s"):
        return format_seconds(value)
    if name.endswith("_bytes"):
        return format_bytes(value)
    return f"{value:.4g}"
