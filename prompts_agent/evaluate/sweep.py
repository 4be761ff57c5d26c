"""Sweep: one workload and the layouts of it that somebody ran, those that failed included."""

from __future__ import annotations

from prompts_agent.layout.layout import Layout
from prompts_agent.record import Record
from prompts_agent.workload.workload import Measured, Workload

__all__ = ["Sweep"]


class Sweep(Record):
    """`workload` names neither a baseline nor an answer; `rows` are what a ranking is held against.

    A row either has a time or is an out-of-memory fact. `failed` are layouts that were tried and
    gave no figure, for a cause that the source does not say: neither a time nor a fact.
    """

    workload: Workload
    rows: tuple[Measured, ...]
    failed: tuple[Layout, ...] = ()
    framework: str
    collection: str
    """The published sweep that the rows come from."""
    cluster: str
    """Sweeps of one cluster are one workload under neighbouring loads, and count as one."""
    rankable: bool = True
    """Everything but the layout was equal between the rows. False: rows are facts one by one."""

    @property
    def with_alternatives(self) -> Workload:
        """The same as a workload file would say it: rows as the workload's alternatives."""
        return self.workload.model_copy(update={"alternatives": self.rows})
