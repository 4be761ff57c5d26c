"""Dropless: whether a job's experts take every token, or only as many as they have room for."""

from __future__ import annotations

from prompts_agent.compile.expert_axis import divides
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.layout import Layout
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Workload

__all__ = ["is_dropless"]

_WITH_CAPACITY = (Framework.JAX, Framework.MAXTEXT, Framework.PAX, Framework.AXLEARN)


def is_dropless(workload: Workload, layout: Layout) -> bool:
    """Servers drop nothing, nor do Megatron-Core, torchtitan and MegaBlocks unless told to.

    Training in jax has a capacity, as the published Mixtral recipes for TPUs have
    (`capacity_factor` 1.25); a job on TPUs that names no framework is taken for one. MaxText has
    both, so a workload may say which (`dropless`).
    """
    if workload.dropless is not None and workload.phase.is_training and not divides(layout):
        return workload.dropless
    if not workload.phase.is_training or divides(layout):
        return True
    if workload.framework is None:
        return find_chip(workload.topology.chip).platform != "tpu"
    return workload.framework not in _WITH_CAPACITY
