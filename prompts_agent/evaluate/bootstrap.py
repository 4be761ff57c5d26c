"""Means and quantiles over workloads, with bootstrap intervals that are the same every time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from prompts_agent.record import Record

__all__ = ["Figure", "mean_figure", "quantile_figure", "ratio_figure"]

_RESAMPLES = 1000
_SEED = 20240229
FloatColumn = NDArray[np.float64]


class Figure(Record):
    """One number, the 95% bootstrap interval over workloads, and how many workloads there are."""

    value: float
    low: float
    high: float
    workloads: int


def _draws(count: int) -> NDArray[np.int64]:
    """How often each workload is drawn, int64[resamples, count]."""
    generator = np.random.default_rng(_SEED)
    return generator.multinomial(count, np.full(count, 1.0 / count), size=_RESAMPLES)


def _figure(value: float, resampled: FloatColumn, workloads: int) -> Figure:
    known = resampled[np.isfinite(resampled)]
    low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (value, value)
    return Figure(
        value=round(value, 6),
        low=round(float(low), 6),
        high=round(float(high), 6),
        workloads=workloads,
    )


def mean_figure(by_cluster: Mapping[str, Sequence[float]]) -> Figure | None:
    """The mean over clusters of each cluster's mean; None without values."""
    values = np.array([np.mean(found) for found in by_cluster.values() if len(found)])
    if not len(values):
        return None
    return _figure(float(values.mean()), _draws(len(values)) @ values / len(values), len(values))


def quantile_figure(by_cluster: Mapping[str, Sequence[float]], share: float) -> Figure | None:
    """The quantile over all rows, where the rows of a cluster share one weight."""
    clusters = [np.asarray(found, dtype=np.float64) for found in by_cluster.values() if len(found)]
    if not clusters:
        return None
    values = np.concatenate(clusters)
    owner = np.repeat(np.arange(len(clusters)), [len(c) for c in clusters])
    weight = np.concatenate([np.full(len(c), 1.0 / len(c)) for c in clusters])
    order = np.argsort(values, kind="stable")
    values, owner, weight = values[order], owner[order], weight[order]

    def of(counts: NDArray[np.int64]) -> float:
        total = np.cumsum(weight * counts[owner])
        place = int(np.searchsorted(total, share * total[-1] * (1.0 - 1e-12)))
        return float(values[min(place, len(values) - 1)])

    draws = _draws(len(clusters))
    whole = of(np.ones(len(clusters), dtype=np.int64))
    return _figure(whole, np.array([of(draw) for draw in draws]), len(clusters))


def ratio_figure(by_cluster: Mapping[str, tuple[float, float]]) -> Figure | None:
    """A sum ÷ a sum over clusters: rows, not workloads, count alike. None where nothing is below
    the line.
    """
    pairs = np.array([pair for pair in by_cluster.values() if pair[1] > 0], dtype=np.float64)
    if not len(pairs):
        return None
    sums = _draws(len(pairs)) @ pairs
    with np.errstate(invalid="ignore", divide="ignore"):
        resampled = sums[:, 0] / sums[:, 1]
    return _figure(float(pairs[:, 0].sum() / pairs[:, 1].sum()), resampled, len(pairs))
