"""Rows of the summary's tables: one for each way of choosing or predicting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from prompts_agent.evaluate.bootstrap import Figure, mean_figure, quantile_figure, ratio_figure
from prompts_agent.evaluate.score import ADVISOR, Fact, Method, Point, Score

__all__ = ["adopted_rows", "error_rows", "fit_rows", "free_rows", "sweep_rows"]

Rows = Iterator[tuple[str, tuple[Figure | None, ...]]]


def _methods(scores: Sequence[Score]) -> list[str]:
    """Every method, ours first, then as scores name them."""
    return list(dict.fromkeys([ADVISOR, *(name for s in scores for name in s.methods)]))


def _mean(
    scores: Sequence[Score], name: str, value: Callable[[Method], float | None]
) -> Figure | None:
    clusters: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        method = score.methods.get(name)
        found = value(method) if method is not None else None
        if found is not None:
            clusters[score.cluster].append(found)
    return mean_figure(clusters)


def adopted_rows(scores: Sequence[Score]) -> Rows:
    """Agreement with adopted layouts. Ties: no mesh is estimated more than 3% faster."""
    adopted = [s for s in scores if s.kind == "adopted"]
    for name in _methods(adopted) if adopted else []:
        tied = None
        if name == ADVISOR:
            tied = mean_figure({s.cluster: [float(s.place_with_ties == 1)] for s in adopted})
        elif name == "random":
            tied = _mean(adopted, name, lambda m: m.top_1)
        yield (
            name,
            (
                _mean(adopted, name, lambda m: m.top_1),
                _mean(adopted, name, lambda m: m.top_3),
                tied,
            ),
        )


def sweep_rows(scores: Sequence[Score]) -> Rows:
    """Regret, and how the order of runs agrees."""
    sweeps = [s for s in scores if s.kind == "sweep"]
    for name in _methods(sweeps) if sweeps else []:
        yield (
            name,
            (
                _mean(sweeps, name, lambda m: m.regret),
                _mean(sweeps, name, lambda m: m.regret_3),
                _mean(sweeps, name, lambda m: m.top_1),
                _mean(sweeps, name, lambda m: m.tau),
            ),
        )


def free_rows(scores: Sequence[Score]) -> Rows:
    """Our first choice of everything legal; beside it a run drawn at random, which is measured by
    definition, and what share of all that was tried failed.
    """
    free = [(s, s.unrestricted) for s in scores if s.unrestricted is not None]
    if not free:
        return
    shares: dict[str, list[float]] = defaultdict(list)
    failures: dict[str, list[float]] = defaultdict(list)
    regrets: dict[str, list[float]] = defaultdict(list)
    for score, found in free:
        shares[score.cluster].append(float(found.measured))
        failures[score.cluster].append(float(found.failed))
        if found.regret is not None:
            regrets[score.cluster].append(found.regret)
    yield ADVISOR, (mean_figure(shares), mean_figure(failures), mean_figure(regrets))
    tried: dict[str, list[float]] = defaultdict(list)
    chances: dict[str, list[float]] = defaultdict(list)
    for score, found in free:
        tried[score.cluster].append(found.tried_failed)
        chances[score.cluster].append(found.tried_share)
    yield (
        "random",
        (
            mean_figure(chances),
            mean_figure(tried),
            _mean([s for s, _ in free], "random", lambda m: m.regret),
        ),
    )


def _points(scores: Sequence[Score], quantity: str) -> Iterator[tuple[str, Point]]:
    """The points of a quantity, each once: a file's runs stand with its adopted layout."""
    with_answer = {s.workload for s in scores if s.kind == "adopted"}
    for score in scores:
        if score.kind == "adopted" or score.workload not in with_answer:
            for point in score.points:
                if point.quantity == quantity:
                    yield score.cluster, point


def error_rows(scores: Sequence[Score], quantity: str) -> Rows:
    """|estimate ÷ measured - 1|: the rows of one workload share one weight."""
    found = list(_points(scores, quantity))
    if not found:
        return
    predictors: tuple[tuple[str, Callable[[Point], float | None]], ...] = (
        (ADVISOR, lambda p: p.estimated),
        ("no calibration", lambda p: p.uncalibrated),
        ("40% of peak FLOP/s", lambda p: p.rule),
    )
    for name, estimate in predictors:
        every = _errors(found, estimate)
        near = _errors([(c, p) for c, p in found if p.near], estimate)
        yield (
            name,
            (
                quantile_figure(every, 0.5),
                quantile_figure(every, 0.9),
                quantile_figure(near, 0.5),
                quantile_figure(near, 0.9),
                _coverage(found, estimate),
            ),
        )


def _errors(
    found: Sequence[tuple[str, Point]], estimate: Callable[[Point], float | None]
) -> dict[str, list[float]]:
    clusters: dict[str, list[float]] = defaultdict(list)
    for cluster, point in found:
        value = estimate(point)
        if value is not None:
            clusters[cluster].append(abs(value / point.measured - 1.0))
    return clusters


def _coverage(
    found: Sequence[tuple[str, Point]], estimate: Callable[[Point], float | None]
) -> Figure | None:
    """How often the measured figure lies in the interval, moved to the estimate in question."""
    clusters: dict[str, list[float]] = defaultdict(list)
    for cluster, point in found:
        value = estimate(point)
        if value is not None and point.low is not None and point.high is not None:
            moved = value / point.estimated
            inside = point.low * moved <= point.measured <= point.high * moved
            clusters[cluster].append(float(inside))
    return mean_figure(clusters)


def fit_rows(scores: Sequence[Score]) -> Rows:
    """Rows that ran out of memory and rows that ran. Every row counts alike: the former are few."""
    with_answer = {s.workload for s in scores if s.kind == "adopted"}
    clusters: dict[str, list[Fact]] = defaultdict(list)
    for score in scores:
        if score.kind == "adopted" or score.workload not in with_answer:
            clusters[score.cluster] += score.facts
    judges: tuple[tuple[str, Callable[[Fact], bool]], ...] = (
        (ADVISOR, lambda f: f.called_misfit),
        ("16 bytes a parameter", lambda f: f.rule_called_misfit),
        ("everything fits", lambda _f: False),
    )
    if not any(clusters.values()):
        return
    for name, refuses in judges:
        yield (
            name,
            (
                _share(clusters, lambda f, r=refuses: r(f), lambda f: not f.fitted),  # type: ignore[misc]
                _share(clusters, lambda f, r=refuses: not r(f), lambda f: f.fitted),  # type: ignore[misc]
                _share(clusters, lambda f: not f.fitted, refuses),
            ),
        )


def _share(
    clusters: dict[str, list[Fact]],
    hit: Callable[[Fact], bool],
    among: Callable[[Fact], bool],
) -> Figure | None:
    pairs = {}
    for name, facts in clusters.items():
        counted = [fact for fact in facts if among(fact)]
        pairs[name] = (float(sum(hit(fact) for fact in counted)), float(len(counted)))
    return ratio_figure(pairs)
