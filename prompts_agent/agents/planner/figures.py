"""Figures: the formatted values that a draft's placeholders stand for, all from the estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.report import Change
from prompts_agent.units import format_bytes, format_seconds

__all__ = ["figures", "term_words"]


def figures(
    candidate: Candidate, today: Candidate | None, changes: Sequence[Change]
) -> dict[str, str]:
    """`term:NAME` of the candidate, `today:NAME` of the baseline, `change:WHAT` as before → after.

    Besides the terms: `step_time`, `step_low`, `step_high` and `hbm`.
    """
    found = _of("term", candidate)
    if today is not None:
        found |= _of("today", today)
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
    found |= {f"{kind}:{n}": format_seconds(v) for n, v in times.items() if v is not None}
    found[f"{kind}:hbm"] = format_bytes(predicted.hbm_bytes)
    return found


def _text(name: str, value: float) -> str:
    if name.endswith("_s"):
        return format_seconds(value)
    if name.endswith("_bytes"):
        return format_bytes(value)
    return f"{value:.4g}"


def term_words(name: str) -> str:
    """`time.tensor_exposed_s` → `tensor exposed`, for a sentence."""
    bare = name.rsplit(".", 1)[-1].removesuffix("_s").removesuffix("_bytes")
    return bare.replace("_", " ")
