"""Space: everything that decides which layouts are legal, gathered in one record."""

from __future__ import annotations

from pydantic import Field

from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record

__all__ = ["Space"]


class Space(Record):
    """The search space of one workload.

    A person narrows it (`axes`, `max_degree`, `fixed`…) where the framework, the code or a
    contract leaves no choice; an empty restriction allows everything.
    """

    model: ModelSpec
    topology: Topology
    training: bool
    global_batch: int = Field(ge=1)
    """Sequences per optimizer step, or sequences that are decoded at the same time."""
    sequence: int = Field(ge=1)
    """Tokens per sequence."""
    axes: tuple[Axis, ...] = tuple(Axis)
    """Axes that may be larger than one."""
    min_degree: dict[Axis, int] = {}
    max_degree: dict[Axis, int] = {}
    remat: tuple[Remat, ...] = tuple(Remat)
    sequence_parallel: tuple[bool, ...] = (False, True)
    weights_over_context: bool = True
    expert_divides: bool = False
    microbatches: tuple[int, ...] = ()
    """Allowed microbatch sizes; empty: every divisor of the batch per shard."""
    max_gradient_accumulation: int | None = None
    zero_stage: int = 1
