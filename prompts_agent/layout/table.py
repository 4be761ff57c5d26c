"""LayoutTable: many layouts as parallel columns, so that a search is arithmetic on arrays.

A single layout is a table of one row; there is one implementation of every rule and formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from prompts_agent.layout.layout import Layout, PipelineSchedule, Remat
from prompts_agent.layout.mesh import Axis, Mesh

__all__ = ["KV_DTYPES", "REMATS", "SCHEDULES", "LayoutTable"]

REMATS = tuple(Remat)
SCHEDULES = tuple(PipelineSchedule)
KV_DTYPES = ("bf16", "fp8", "int8")

IntColumn = NDArray[np.int64]
BoolColumn = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTable:
    """Columns of equal length n. `ici` and `dcn` have shape (n, 6), axes in the order of `Axis`."""

    ici: IntColumn
    dcn: IntColumn
    expert_divides: BoolColumn
    microbatch: IntColumn
    gradient_accumulation: IntColumn
    remat: IntColumn
    """Index into REMATS."""
    zero_stage: IntColumn
    sequence_parallel: BoolColumn
    weights_over_context: BoolColumn
    schedule: IntColumn
    """Index into SCHEDULES."""
    virtual_stages: IntColumn
    attention_data: IntColumn
    batch_limit: IntColumn
    """0: no limit."""
    kv_dtype: IntColumn
    """Index into KV_DTYPES."""

    def __len__(self) -> int:
        return int(self.ici.shape[0])

    def size(self, axis: Axis) -> IntColumn:
        """Devices along `axis`, int64[n]."""
        column = list(Axis).index(axis)
        return self.ici[:, column] * self.dcn[:, column]

    @property
    def batch_shards(self) -> IntColumn:
        """Over how many shards the batch is cut, int64[n]; see `Layout.batch_shards`."""
        shards = self.size(Axis.DATA) * self.size(Axis.FSDP)
        return np.where(self.expert_divides, shards, shards * self.size(Axis.EXPERT))

    @property
    def devices(self) -> IntColumn:
        """Devices that each layout takes, int64[n]."""
        product: IntColumn = np.prod(self.ici * self.dcn, axis=1)
        counted: IntColumn = np.where(
            self.expert_divides, product // self.size(Axis.EXPERT), product
        )
        return counted

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> LayoutTable:
        """The rows of that mask or those indices, in that order."""
        return LayoutTable(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def row(self, index: int) -> Layout:
        """One row as a Layout."""
        mesh = {
            axis: {"ici": int(self.ici[index, k]), "dcn": int(self.dcn[index, k])}
            for k, axis in enumerate(Axis)
        }
        limit = int(self.batch_limit[index])
        return Layout(
            mesh=Mesh.model_validate(mesh),
            expert_divides=bool(self.expert_divides[index]),
            microbatch=int(self.microbatch[index]),
            gradient_accumulation=int(self.gradient_accumulation[index]),
            remat=REMATS[int(self.remat[index])],
            zero_stage=int(self.zero_stage[index]),
            sequence_parallel=bool(self.sequence_parallel[index]),
            weights_over_context=bool(self.weights_over_context[index]),
            schedule=SCHEDULES[int(self.schedule[index])],
            virtual_stages=int(self.virtual_stages[index]),
            attention_data=int(self.attention_data[index]),
            batch_limit=limit or None,
            kv_dtype=KV_DTYPES[int(self.kv_dtype[index])],
        )

    @classmethod
    def of(cls, layouts: Iterable[Layout]) -> LayoutTable:
        """The table of these layouts, one row each."""
        rows = list(layouts)
        sizes = [[layout.mesh[axis] for axis in Axis] for layout in rows]
        ints: Mapping[str, list[int]] = {
            "microbatch": [r.microbatch for r in rows],
            "gradient_accumulation": [r.gradient_accumulation for r in rows],
            "remat": [REMATS.index(r.remat) for r in rows],
            "zero_stage": [r.zero_stage for r in rows],
            "schedule": [SCHEDULES.index(r.schedule) for r in rows],
            "virtual_stages": [r.virtual_stages for r in rows],
            "attention_data": [r.attention_data for r in rows],
            "batch_limit": [r.batch_limit or 0 for r in rows],
            "kv_dtype": [KV_DTYPES.index(r.kv_dtype) for r in rows],
        }
        return cls(
            ici=np.array([[s.ici for s in row] for row in sizes], dtype=np.int64).reshape(-1, 6),
            dcn=np.array([[s.dcn for s in row] for row in sizes], dtype=np.int64).reshape(-1, 6),
            expert_divides=np.array([r.expert_divides for r in rows], dtype=np.bool_),
            sequence_parallel=np.array([r.sequence_parallel for r in rows], dtype=np.bool_),
            weights_over_context=np.array([r.weights_over_context for r in rows], dtype=np.bool_),
            **{name: np.array(values, dtype=np.int64) for name, values in ints.items()},
        )
