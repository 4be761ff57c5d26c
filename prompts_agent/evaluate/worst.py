"""The workloads on which the advisor is most wrong, with the terms of its choice and of theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prompts_agent.evaluate.score import ADVISOR, Choice, Score

__all__ = ["worst", "worst_markdown"]


def worst(scores: Sequence[Score], count: int = 20) -> list[Score]:
    """Sweeps by the regret of our first choice, one of each cluster, then adopted cases by how many
    meshes we rank before the expert's; half of each where there are enough.
    """
    sweeps: dict[str, Score] = {}
    for score in sorted(scores, key=_regret, reverse=True):
        if score.kind == "sweep" and _regret(score) > 0.0:
            sweeps.setdefault(score.cluster, score)
    adopted = [s for s in scores if s.kind == "adopted" and s.place != 1]
    adopted.sort(key=_misplaced, reverse=True)
    half = max(count // 2, count - len(adopted))
    first = list(sweeps.values())[:half]
    return first + adopted[: count - len(first)]


def _regret(score: Score) -> float:
    method = score.methods.get(ADVISOR)
    return method.regret or 0.0 if method is not None else 0.0


def _misplaced(score: Score) -> float:
    return float("inf") if score.place is None else float(score.place_with_ties or score.place)


def worst_markdown(scores: Sequence[Score], count: int = 20) -> str:
    """The list as Markdown."""
    lines: list[str] = []
    for number, score in enumerate(worst(scores, count), 1):
        lines += _entry(number, score)
    return "\n".join(lines) + "\n"


def _entry(number: int, score: Score) -> Iterator[str]:
    if score.kind == "sweep":
        found = f"regret {_regret(score):.0%}, best of three {_three(score):.0%}"
    elif score.place is None:
        found = f"the adopted layout is not ranked: {score.unranked}"
    else:
        found = (
            f"the adopted mesh is number {score.place} of {score.legal_meshes}, "
            f"number {score.place_with_ties} with ties"
        )
    tags = score.tags
    yield f"{number}. **{score.workload}** ({tags.framework}, {tags.chip}, {tags.phase}): {found}"
    for name, choice in (("ours", score.first), ("theirs", score.truth)):
        if choice is not None:
            yield f"   - {name}: {_choice(choice)}"


def _three(score: Score) -> float:
    return score.methods[ADVISOR].regret_3 or 0.0


def _choice(choice: Choice) -> str:
    measured = f", measured {choice.measured_s:.4g} s" if choice.measured_s is not None else ""
    terms = ", ".join(
        f"{name.removeprefix('time.').removeprefix('serving.')} {value:.3g}"
        for name, value in choice.terms.items()
        if not name.startswith("memory.")
    )
    memory = ", ".join(
        f"{name.removeprefix('memory.').removesuffix('_bytes')} {value / 1e9:.1f}"
        for name, value in choice.terms.items()
        if name.startswith("memory.")
    )
    return (
        f"{choice.layout}; estimated {choice.estimated_s:.4g} s{measured}; {terms}; "
        f"{choice.hbm_gb:.1f} GB ({memory})"
    )
