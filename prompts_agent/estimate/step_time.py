"""The time of a training step, from compute, collectives, overlap and the pipeline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate import collectives, compute
from prompts_agent.estimate.architecture import Architecture
from prompts_agent.estimate.calibration import Constants
from prompts_agent.estimate.links import Links
from prompts_agent.estimate.pipeline import bubble, stage_transfer_bytes
from prompts_agent.estimate.sizes import Sizes, dtype_bytes
from prompts_agent.hardware.chip import Chip
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Workload

__all__ = ["exposed_s", "step_time"]

FloatColumn = NDArray[np.float64]


def exposed_s(
    busy_s: FloatColumn, overlap: float | FloatColumn, under_s: FloatColumn
) -> FloatColumn:
    """What is left of `busy_s` when compute of `under_s` hides what it can.

    At most the share `overlap` of the traffic can be hidden, and no more than there is compute:
    10 s of traffic with overlap 0.9 under 6 s of compute leave 4 s; under 20 s they leave 1 s.
    """
    return busy_s - np.minimum(overlap * busy_s, under_s)


def step_time(
    table: LayoutTable,
    workload: Workload,
    arch: Architecture,
    z: Sizes,
    chip: Chip,
    links: Links,
    memory_terms: dict[str, FloatColumn],
    constants: Constants,
) -> dict[str, FloatColumn]:
    """Term → seconds a step, float64[n]; their sum is the step time.

    `matmul_s`, `attention_s`, `elementwise_s`, `logits_s` and the `*_exposed_s` are summed over the
    microbatches; `bubble_s` is the pipeline's idle time over those; `data_exposed_s` and
    `optimizer_s` come once a step.
    """
    work = _compute_terms(table, workload, arch, z, chip, constants)
    under = np.sum(list(work.values()), axis=0)
    waits = _exposed_terms(table, workload, arch, z, links, under, constants)
    each = {**work, **waits}
    once = _once_terms(table, z, chip, links, memory_terms, under, constants)
    steps = {name: z.microbatches * value for name, value in each.items()}
    busy = np.sum(list(steps.values()), axis=0)
    return {**steps, "bubble_s": busy * bubble(table, z), **once}


def _compute_terms(
    table: LayoutTable, workload: Workload, arch: Architecture, z: Sizes, chip: Chip,
    constants: Constants,
) -> dict[str, FloatColumn]:
    precision = workload.precision
    return {
        "matmul_s": compute.matmul_s(table, arch, z, chip, precision, constants),
        "attention_s": compute.attention_s(
            table, arch, z, chip, precision, constants, sequence=workload.sequence
        ),
        "elementwise_s": compute.elementwise_s(table, arch, z, chip, precision, constants),
        "logits_s": compute.logits_s(arch, z, chip, precision, constants),
    }


def _exposed_terms(
    table: LayoutTable, workload: Workload, arch: Architecture, z: Sizes, links: Links,
    under: FloatColumn, constants: Constants,
) -> dict[str, FloatColumn]:
    size = dtype_bytes(workload.precision.compute)
    fsdp = collectives.fsdp_s(arch, z, links, size, size)
    tensor = collectives.tensor_s(table, arch, z, links, size)
    context = collectives.context_s(table, arch, z, links, size)
    expert = collectives.expert_s(table, arch, z, links, size)
    overlap = np.where(
        table.sequence_parallel, constants.tensor_overlap_sharded, constants.tensor_overlap
    )
    sent = stage_transfer_bytes(table, z, arch.embed, size)
    return {
        "fsdp_exposed_s": exposed_s(fsdp, constants.fsdp_overlap, under),
        "tensor_exposed_s": exposed_s(tensor, overlap, under),
        "context_exposed_s": exposed_s(context, constants.context_overlap, under),
        "expert_exposed_s": exposed_s(expert, constants.expert_overlap, under),
        "pipeline_exposed_s": collectives.send_s(links, Axis.PIPELINE, sent),
    }


def _once_terms(
    table: LayoutTable, z: Sizes, chip: Chip, links: Links, memory_terms: dict[str, FloatColumn],
    under: FloatColumn, constants: Constants,
) -> dict[str, FloatColumn]:
    gradients, weights = memory_terms["gradients"], memory_terms["weights"]
    data = collectives.data_s(table, z, links, gradients, gradients)
    backward = under * compute.backward_share(table)
    state = weights + memory_terms["optimizer"]
    return {
        "data_exposed_s": exposed_s(data, constants.data_overlap, backward),
        "optimizer_s": compute.optimizer_s(state, gradients, chip, constants),
        "overhead_s": np.full_like(under, constants.step_overhead_s),
    }
