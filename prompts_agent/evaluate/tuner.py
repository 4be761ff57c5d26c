"""TPE, a tuner that learns from runs, as a baseline: it is given runs, we are given none."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prompts_agent.evaluate.score import Method
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable

__all__ = ["tuned", "tuner_version"]

_SEEDS = 3
_RUNS = 10
_FIRST_AT_RANDOM = 2
"""Trials before TPE's model is used; the default of ten would leave it random throughout."""


def tuner_version() -> str | None:
    """The version of optuna, or None where it is not installed (extra `evaluate`)."""
    if importlib.util.find_spec("optuna") is None:
        return None
    return str(importlib.import_module("optuna").__version__)


def tuned(table: LayoutTable, times_s: NDArray[np.float64]) -> dict[str, Method]:
    """What TPE's best run loses after three runs (as many as we propose) and after ten, on average
    over three seeds. Empty without optuna.

    A point that nobody ran stands for the nearest run that TPE has not seen yet.
    """
    if tuner_version() is None:
        return {}
    paths = [_path(table, times_s, seed) for seed in range(_SEEDS)]
    best = float(times_s.min())
    after = [
        float(np.mean([min(path[:runs]) / best - 1.0 for path in paths])) for runs in (3, _RUNS)
    ]
    return {"tpe, 3 runs": Method(regret_3=after[0]), "tpe, 10 runs": Method(regret_3=after[1])}


def _path(table: LayoutTable, times_s: NDArray[np.float64], seed: int) -> list[float]:
    """Times of the runs that TPE asks for, in its order."""
    optuna: Any = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    knobs = [*(table.size(axis) for axis in Axis), table.microbatch, table.zero_stage + 1]
    space = np.log2(np.stack(knobs, axis=1).astype(np.float64))
    moving = [k for k in range(space.shape[1]) if len(np.unique(space[:, k])) > 1]
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=_FIRST_AT_RANDOM)
    study = optuna.create_study(sampler=sampler)
    seen: list[int] = []
    for _ in range(min(_RUNS, len(table))):
        trial = study.ask()
        asked = np.array(
            [trial.suggest_categorical(str(k), sorted(set(space[:, k].tolist()))) for k in moving]
        )
        away = np.abs(space[:, moving] - asked).sum(axis=1) if moving else np.zeros(len(table))
        away[seen] = np.inf
        row = int(np.argmin(away))
        seen.append(row)
        study.tell(trial, float(np.log(times_s[row])))
    return [float(times_s[row]) for row in seen]
