"""The time of a training step, from compute, collectives, overlap and the pipeline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate import collectives, compute
from prompts_agent.estimate.pipeline import bubble, stage_transfer_bytes, tail_microbatches
from prompts_agent.estimate.setting import Setting
from prompts_agent.layout.mesh import Axis

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


def step_time(at: Setting, memory_terms: dict[str, FloatColumn]) -> dict[str, FloatColumn]:
    """Term → seconds a step, float64[n]; their sum is the step time.

    `matmul_s`, `attention_s`, `elementwise_s`, `logits_s` and the `*_exposed_s` are summed over the
    microbatches, and so is `launch_s`, what layers wait for launches; `bubble_s` is the pipeline's
    idle time over those; `data_exposed_s`, `optimizer_s` and `overhead_s` come once a step, and
    `straggler_s` is what the slowest of all devices adds to the whole.
    """
    work = _compute_terms(at)
    under = np.sum(list(work.values()), axis=0)
    waits = _exposed_terms(at, under)
    busy = under + np.sum(list(waits.values()), axis=0)
    launch = np.maximum(at.sizes.layers * at.constants.layer_floor_s - busy, 0.0)
    each = {**work, **waits, "launch_s": launch}
    steps = {name: at.sizes.microbatches * value for name, value in each.items()}
    steps["stall_s"] = at.sizes.microbatches * _stall_s(at)
    idle = at.sizes.microbatches * (busy + launch) * bubble(at)
    terms = {**steps, "bubble_s": idle, **_once_terms(at, memory_terms, under)}
    whole = np.sum(list(terms.values()), axis=0)
    doublings = np.log2(at.workload.topology.devices)
    return {**terms, "straggler_s": at.constants.straggle * doublings * whole}


def _stall_s(at: Setting) -> float:
    """What a microbatch waits that neither its work nor its traffic explains: `stall × (n ÷ 512)³`.

    nanotron's published runs wait 1.4 s a microbatch on 512 GPUs, be the model 1B or 8B, 0.1 to
    0.6 s on 256 and hardly on 64 (nanotron_ultrascale); other software shows none.
    """
    return at.constants.microbatch_stall_s * (at.workload.topology.devices / 512.0) ** 3


def _compute_terms(at: Setting) -> dict[str, FloatColumn]:
    layers = {
        "matmul_s": compute.matmul_s(at),
        "attention_s": compute.attention_s(at),
        "elementwise_s": compute.elementwise_s(at),
    }
    return {**layers, "logits_s": _logits_on_path(at, np.sum(list(layers.values()), axis=0))}


def _logits_on_path(at: Setting, stage_s: FloatColumn) -> FloatColumn:
    """Time of the logits that the pipeline waits for.

    Without stages all of it. On TPUs every stage's devices share the logits, outside the pipeline,
    and nanotron gives the last stage as many layers fewer as the logits weigh.
    On GPUs the last stage has them besides its layers, of which it may have fewer than the others:
    61 layers in 16 stages are 4 a stage and 1 in the last, which leaves 3 layers' time for them;
    126 in 64 chunks are 2 a chunk, but 1 in the first and in the last.
    """
    logits, z = compute.logits_s(at), at.sizes
    if not at.links.switched or at.stack == "eager":
        return np.asarray(logits / z.pipeline)
    fewer = z.pipeline * z.layers - at.arch.layers
    chunks = z.pipeline * np.maximum(at.table.virtual_stages.astype(np.float64), 1.0)
    # Where the last chunk would be empty, the first and the last have one layer fewer.
    spare = np.where(fewer < np.ceil(at.arch.layers / chunks), fewer, 1.0)
    return np.where(z.pipeline > 1.0, np.maximum(logits - spare * stage_s / z.layers, 0.0), logits)


def _exposed_terms(at: Setting, under: FloatColumn) -> dict[str, FloatColumn]:
    constants = at.constants
    tensor_overlap = np.where(
        at.table.sequence_parallel, constants.tensor_overlap_sharded, constants.tensor_overlap
    )
    # Between stages another microbatch computes meanwhile (arXiv 2412.19437, section 3.2.1).
    expert_overlap = np.where(
        at.sizes.pipeline > 1.0, constants.expert_overlap_staged, constants.expert_overlap
    )
    sends = collectives.send_s(at.links, Axis.PIPELINE, stage_transfer_bytes(at))
    return {
        "fsdp_exposed_s": exposed_s(collectives.fsdp_s(at), constants.fsdp_overlap, under),
        "tensor_exposed_s": exposed_s(collectives.tensor_s(at), tensor_overlap, under),
        "context_exposed_s": exposed_s(collectives.context_s(at), constants.context_overlap, under),
        "expert_exposed_s": exposed_s(collectives.expert_s(at), expert_overlap, under),
        "pipeline_exposed_s": exposed_s(sends, constants.pipeline_overlap, under),
        "host_exposed_s": exposed_s(compute.host_s(at), 1.0, under),
    }


def _once_terms(
    at: Setting, memory_terms: dict[str, FloatColumn], under: FloatColumn
) -> dict[str, FloatColumn]:
    gradients = memory_terms["gradients"]
    state = memory_terms["weights"] + memory_terms["optimizer"]
    backward = under * compute.backward_share(at) * tail_microbatches(at)
    data = collectives.data_s(at, gradients)
    constants = at.constants
    overlap = np.where(
        at.table.zero_stage >= 1, constants.data_overlap_sharded, constants.data_overlap
    )
    return {
        "data_exposed_s": exposed_s(data, overlap, backward),
        "optimizer_s": compute.optimizer_s(at, state, gradients),
        "overhead_s": np.full_like(under, at.constants.step_overhead_s),
    }
