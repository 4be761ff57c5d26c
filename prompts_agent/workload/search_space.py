"""The search space of a workload: what its constraints, phase and hardware leave open."""

from __future__ import annotations

import numpy as np

from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.domains import domain_size, fill, fill_with_divided
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.space import SERVING_AXES, Space
from prompts_agent.layout.table import KV_DTYPES, LayoutTable
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Workload

__all__ = ["search_space"]

_SERVERS = (Framework.VLLM, Framework.SGLANG, Framework.TENSORRT_LLM)


def search_space(workload: Workload) -> Space:
    """Everything that decides which layouts of this workload are legal.

    GPU frameworks number ranks, so degrees decide there which part of an axis crosses the network;
    jax on TPU slices is free. A baseline that is split otherwise shows that its framework is free.
    """
    constraints, training = workload.constraints, workload.phase.is_training
    asked = "axes" in constraints.model_fields_set
    kv_dtype = workload.precision.kv_cache
    return Space(
        model=workload.model,
        topology=workload.topology,
        training=training,
        global_batch=workload.global_batch,
        sequence=workload.sequence,
        axes=constraints.axes if training or asked else SERVING_AXES,
        dcn_axes=constraints.dcn_axes,
        free_split=_splits_freely(workload),
        uneven_stages=_cuts_unevenly(workload),
        min_degree=constraints.min_degree,
        max_degree=constraints.max_degree,
        remat=constraints.remat or _remats(workload),
        sequence_parallel=constraints.sequence_parallel or (False, True),
        weights_over_context=constraints.weights_over_context,
        expert_divides=_expert_divides(workload),
        expert_whole=workload.framework is Framework.VLLM,
        zero_stage=constraints.zero_stage,
        microbatches=constraints.microbatches,
        virtual_stages=constraints.virtual_stages,
        attention_data=constraints.attention_data or _attention_groups(workload),
        batch_limits=_has_limits(workload),
        max_gradient_accumulation=constraints.max_gradient_accumulation,
        kv_dtypes=constraints.kv_dtypes,
        kv_dtype=kv_dtype if kv_dtype in KV_DTYPES else KV_DTYPES[0],
    )


def _expert_divides(workload: Workload) -> bool:
    """As the workload says. Servers by name, and on GPUs, put experts on the ranks of a replica."""
    constraints = workload.constraints
    if "expert_divides" in constraints.model_fields_set or workload.phase.is_training:
        return constraints.expert_divides
    on_gpu = find_chip(workload.topology.chip).platform == "gpu"
    return on_gpu or workload.framework in _SERVERS


def _attention_groups(workload: Workload) -> tuple[int, ...]:
    """Empty: any. vLLM's attention groups on GPUs are ranks that share experts: a dense model has
    none.
    """
    on_gpu = find_chip(workload.topology.chip).platform == "gpu"
    dense = workload.model.moe is None
    return (1,) if workload.framework is Framework.VLLM and on_gpu and dense else ()


def _has_limits(workload: Workload) -> bool:
    """Working on fewer sequences at once can keep a limit on latency, and gains nothing else."""
    traffic = workload.traffic
    return traffic is not None and bool(traffic.ttft_limit_s or traffic.tpot_limit_s)


def _remats(workload: Workload) -> tuple[Remat, ...]:
    """Moving activations to the host is a policy of XLA on TPUs; trainers on GPUs have no such
    switch, or a model's own.
    """
    on_tpu = find_chip(workload.topology.chip).platform == "tpu"
    return tuple(remat for remat in Remat if on_tpu or remat is not Remat.OFFLOAD)


def _cuts_unevenly(workload: Workload) -> bool:
    """Trainers on GPUs that run each stage as a program of its own; a compiler's scan cannot.

    Such a trainer shows in that its axes are named: experts that divide, or fewer axes than all.
    """
    constraints = workload.constraints
    own_stages = _expert_divides(workload) or set(constraints.axes) != set(Axis)
    return find_chip(workload.topology.chip).platform == "gpu" and own_stages


def _splits_freely(workload: Workload) -> bool:
    if find_chip(workload.topology.chip).platform == "tpu":
        return True
    return workload.baseline is not None and not _in_rank_order(workload.baseline, workload)


def _in_rank_order(layout: Layout, workload: Workload) -> bool:
    table = LayoutTable.of([layout])
    split = fill_with_divided if layout.expert_divides else fill
    ici, _ = split(table.ici * table.dcn, domain_size(workload.topology))
    return bool(np.array_equal(ici, table.ici))
