"""The search space of a workload: its constraints, and what its phase allows."""

from __future__ import annotations

from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.space import SERVING_AXES, Space
from prompts_agent.layout.table import KV_DTYPES
from prompts_agent.workload.workload import Workload

__all__ = ["space_of"]


def space_of(workload: Workload) -> Space:
    """The Space that the planner searches; today's layout, where known, fixes what a mesh cannot
    change without changing the framework (expert rule, weights over context).
    """
    asked = workload.constraints
    training = workload.phase.is_training
    axes = asked.axes
    if not training and axes == tuple(Axis):
        axes = SERVING_AXES
    cache = workload.precision.kv_cache
    return Space(
        model=workload.model,
        topology=workload.topology,
        training=training,
        global_batch=workload.global_batch,
        sequence=workload.sequence,
        axes=axes,
        min_degree=asked.min_degree,
        max_degree=asked.max_degree,
        remat=(asked.remat or tuple(Remat)) if training else (Remat.NONE,),
        sequence_parallel=(asked.sequence_parallel or (False, True)) if training else (False,),
        weights_over_context=asked.weights_over_context,
        expert_divides=asked.expert_divides,
        microbatches=asked.microbatches,
        max_gradient_accumulation=asked.max_gradient_accumulation,
        kv_dtype=cache if cache in KV_DTYPES else "bf16",
    )
