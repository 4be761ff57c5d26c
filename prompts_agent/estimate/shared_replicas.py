"""Data ranks that share one set of experts, as what they are: groups of one replica."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable

__all__ = ["joined_replicas"]

_DATA, _TENSOR = (list(Axis).index(axis) for axis in (Axis.DATA, Axis.TENSOR))


def joined_replicas(table: LayoutTable) -> LayoutTable:
    """The table with experts inside replicas, for serving: a dividing expert axis that is larger
    than tensor spreads over data ranks, which thereby are attention groups of one replica.

    data 8 with expert 8 is tensor 8, attention_data 8 with expert 8 (vLLM's data parallelism with
    expert parallelism). The same table comes back where no row is like that.
    """
    expert, tensor = table.size(Axis.EXPERT), table.size(Axis.TENSOR)
    share = np.where(table.expert_divides, np.maximum(expert // tensor, 1), 1)
    if np.all(share == 1):
        return table
    ici, dcn = table.ici.copy(), table.dcn.copy()
    inside = np.gcd(share, ici[:, _DATA])
    across = np.gcd(share // inside, dcn[:, _DATA])
    ici[:, _DATA] //= inside
    ici[:, _TENSOR] *= inside
    dcn[:, _DATA] //= across
    dcn[:, _TENSOR] *= across
    moved = inside * across
    kept = {f.name: getattr(table, f.name) for f in fields(table)}
    return LayoutTable(
        **kept
        | {
            "ici": ici,
            "dcn": dcn,
            "attention_data": np.maximum(table.attention_data, 1) * moved,
            "batch_limit": table.batch_limit * moved,
        }
    )
