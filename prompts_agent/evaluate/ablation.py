"""Ablations: the same advisor without one of its parts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from prompts_agent.estimate.calibration import Calibration
from prompts_agent.layout.table import LayoutTable

__all__ = ["uncalibrated", "unplaced"]


@cache
def _neutral(dumped: str) -> Calibration:
    calibration = Calibration.model_validate_json(dumped)
    platforms = {
        platform: {
            name: constant.model_copy(update={"value": _neutral_value(name, constant.value)})
            for name, constant in constants.items()
        }
        for platform, constants in calibration.platforms.items()
    }
    learnt: dict[str, object] = {"stacks": {}, "chips": {}, "preferences": {}}
    return calibration.model_copy(update={"platforms": platforms, **learnt})


def uncalibrated(calibration: Calibration) -> Calibration:
    """The physics alone: every share of a data sheet's figure is 1, nothing overlaps, latencies,
    overheads and margins are 0; nothing is known of any software or kind of chip, nor of what
    people prefer. The intervals stay those of the calibration.
    """
    return _neutral(calibration.model_dump_json())


def without_preference(calibration: Calibration) -> Calibration:
    """The same constants, and nothing learnt of which meshes people adopt."""
    return calibration.model_copy(update={"preferences": {}})


_MARGINS = frozenset(
    {
        "fragmentation",
        "workspace_bytes",
        "straggle",
        "expert_imbalance",
        "expert_row_touches",
        "prompt_queue",
    }
)


def _neutral_value(name: str, value: float) -> float:
    if name.endswith(("efficiency", "spread")):
        return 1.0
    if "overlap" in name or name.endswith(("_s", "half_extent")):
        return 0.0
    return 0.0 if name in _MARGINS else value


def unplaced(table: LayoutTable) -> LayoutTable:
    """The table as a network without domains would have it: every axis lies inside one domain,
    whatever its degree.
    """
    return replace(table, ici=table.ici * table.dcn, dcn=np.ones_like(table.dcn))
