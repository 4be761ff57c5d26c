"""Space: everything that decides which layouts are legal, gathered in one record."""

from __future__ import annotations

from pydantic import Field

from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record

__all__ = ["SERVING_AXES", "Space"]

SERVING_AXES = (Axis.PIPELINE, Axis.DATA, Axis.EXPERT, Axis.TENSOR)
"""Axes that every serving framework offers. `fsdp` is not among them: each decoded token would
gather all the weights, and no server does it. `context` is (vLLM's prefill and decode context
parallelism), but only some versions have it, so it must be asked for."""


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
    dcn_axes: tuple[Axis, ...] = tuple(Axis)
    """Axes that may cross fast domains. All by default: a small batch with large weights can be
    faster with `tensor` across domains than with `fsdp` across them, so no axis is dominated."""
    free_split: bool = True
    """True: each axis may lie inside and across domains as one likes (jax's hybrid meshes). False:
    ranks are numbered with the innermost axis fastest, so degrees alone decide the split
    (Megatron, torchtitan, DeepSpeed, vLLM). An expert axis that divides others implies False."""
    uneven_stages: bool = False
    """True: the last pipeline stage may have fewer layers than the others, or the first and the
    last one fewer (Megatron's `pipeline-model-parallel-layout`). False: stages are equal, as a scan
    over stages needs."""
    min_degree: dict[Axis, int] = Field(default_factory=dict)
    max_degree: dict[Axis, int] = Field(default_factory=dict)
    remat: tuple[Remat, ...] = tuple(Remat)
    sequence_parallel: tuple[bool, ...] = (False, True)
    weights_over_context: bool = True
    expert_divides: bool = False
    expert_whole: bool = False
    """A dividing expert axis has all the ranks that it divides, or one (vLLM's switch)."""
    microbatches: tuple[int, ...] = ()
    """Allowed microbatch sizes; empty: every divisor of the batch per shard."""
    virtual_stages: tuple[int, ...] = ()
    """Allowed chunks per pipeline stage; empty: every one that divides the stage's layers."""
    attention_data: tuple[int, ...] = ()
    """Serving, allowed attention-data groups; empty: every divisor of `tensor`."""
    batch_limits: bool = False
    """Serving: also layouts whose replicas work on fewer sequences at once than they are given."""
    max_gradient_accumulation: int | None = None
    zero_stage: int = 1
    kv_dtype: str = "bf16"
    """Serving: dtype of the KV cache as it is."""
    kv_dtypes: tuple[str, ...] = ()
    """Serving: dtypes that the cache may have; empty: `kv_dtype` alone, because fewer bits change
    what a model answers."""

    @property
    def rank_order(self) -> bool:
        """Degrees alone decide the split; see `free_split`."""
        return self.expert_divides or not self.free_split
