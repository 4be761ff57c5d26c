"""Serving: rooflines of a prefill step and of a decode step, and the throughput of all replicas.

`data` (and fsdp, which legal serving layouts do not use) counts replicas. Every function returns
float64[n]; b is the sequences that decode together on one replica, t the tensor degree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.architecture import Architecture
from prompts_agent.estimate.calibration import Constants
from prompts_agent.estimate.collectives import all_gather_s, send_s
from prompts_agent.estimate.compute import local_efficiency, peak_flops_per_s
from prompts_agent.estimate.links import Links
from prompts_agent.estimate.sizes import Sizes, dtype_bytes, sequences_per_replica
from prompts_agent.hardware.chip import Chip
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable
from prompts_agent.workload.workload import Phase, Workload

__all__ = ["serving_times", "touched_experts"]

FloatColumn = NDArray[np.float64]


def touched_experts(experts: int, experts_per_token: int, tokens: FloatColumn) -> FloatColumn:
    """Experts whose weights a step of `tokens` tokens reads, routing taken as uniform:
    `E × (1 - (1 - k/E)^tokens)`. 8 experts, 2 a token, 1 token: 2; many tokens: 8."""
    if experts == 0:
        return np.zeros_like(tokens)
    return np.asarray(experts * (1.0 - (1.0 - experts_per_token / experts) ** tokens))


def serving_times(
    table: LayoutTable, workload: Workload, arch: Architecture, z: Sizes, chip: Chip, links: Links,
    kv_cache_bytes: FloatColumn, constants: Constants,
) -> dict[str, FloatColumn]:
    """`ttft_s`, `tpot_s`, `tokens_per_s` (all replicas; input tokens for prefill, else output
    tokens), and the decode step's `weights_s`, `kv_s`, `compute_s`, `exposed_s`.

    Mixed serving alternates: while b sequences each write `output` tokens, b prompts are prefilled,
    so a token costs `TPOT + b × prefill ÷ output`. A pipeline of p stages splits the batch into p
    microbatches: a token passes all stages, and each is busy with another microbatch meanwhile.
    """
    sequences = sequences_per_replica(table, workload)
    replicas = table.batch_shards.astype(np.float64)
    step = _decode_step(table, workload, arch, z, chip, links, sequences, kv_cache_bytes, constants)
    decode = np.sum(list(step.values()), axis=0)
    prompt = float(workload.traffic.input_tokens if workload.traffic else workload.sequence)
    prefill = _prefill_s(table, workload, arch, z, chip, links, prompt, constants)
    if workload.phase is Phase.PREFILL:
        rate = replicas * z.pipeline * prompt / prefill
        return {"ttft_s": prefill, "tpot_s": decode, "tokens_per_s": rate, **step}
    if workload.phase is Phase.DECODE:
        return {"ttft_s": prefill, "tpot_s": decode, "tokens_per_s": replicas * sequences / decode, **step}
    output = float(workload.traffic.output_tokens if workload.traffic else workload.sequence)
    token = decode + sequences * prefill / (output * z.pipeline)
    # A prompt waits for the step that runs when it comes, on average half of one.
    first = prefill + 0.5 * decode
    return {"ttft_s": first, "tpot_s": token, "tokens_per_s": replicas * sequences / token, **step}


def _decode_step(
    table: LayoutTable, workload: Workload, arch: Architecture, z: Sizes, chip: Chip, links: Links,
    sequences: FloatColumn, kv_cache_bytes: FloatColumn, constants: Constants,
) -> dict[str, FloatColumn]:
    """One token for every sequence. Weights and cache are read once from HBM (Pope et al., arXiv
    2211.05102, section 2); the matmuls' FLOP count where they take longer than the weights' read."""
    size = dtype_bytes(workload.precision.weights)
    hbm = chip.hbm_bandwidth_bytes_per_s * constants.hbm_efficiency
    micro = np.ceil(sequences / z.pipeline)
    groups = np.maximum(table.attention_data.astype(np.float64), 1.0)
    touched = touched_experts(arch.experts, arch.experts_per_token, micro * z.expert)
    expert = arch.expert_layer_parameters * touched / max(arch.experts, 1)
    dense = arch.attention_layer_parameters * groups + arch.dense_mlp_layer_parameters
    held = z.layers * (dense / z.tensor + expert / (z.expert * z.expert_tensor))
    read = size * (held + arch.vocab * arch.embed / z.tensor)
    flops = 2.0 * micro * (arch.active_parameters / z.pipeline) / z.tensor
    rate = peak_flops_per_s(chip, workload.precision.compute) * constants.matmul_efficiency
    weights = read / hbm
    compute = np.maximum(flops / rate - weights, 0.0)
    waits = _layer_waits_s(table, workload, arch, z, links, micro, constants, groups)
    stages = z.pipeline
    return {
        "weights_s": stages * weights,
        "kv_s": kv_cache_bytes / hbm,
        "compute_s": stages * compute,
        "exposed_s": stages * waits,
        "overhead_s": stages * z.layers * constants.layer_latency_s + constants.serving_overhead_s,
    }


def _layer_waits_s(
    table: LayoutTable, workload: Workload, arch: Architecture, z: Sizes, links: Links,
    tokens: FloatColumn, constants: Constants, groups: FloatColumn | float,
) -> FloatColumn:
    """Collectives of one stage for `tokens` tokens: two all-reduces a layer over tensor (with
    attention_data, a gather and a scatter round the mlp alone), all-to-alls over expert, context's
    partial softmax, and the send to the next stage. Nothing hides them in a decode step."""
    size = dtype_bytes(workload.precision.compute)
    whole = tokens * arch.embed * size
    reduce = 2.0 * all_gather_s(links, (Axis.TENSOR,), whole)
    times = np.where(np.asarray(groups) > 1.0, 1.0 + (z.tensor > groups), 2.0)
    tensor = np.where(z.tensor > 1.0, times * reduce, 0.0)
    moved = whole * max(arch.experts_per_token, 1) * arch.expert_layer_share
    expert = np.where(z.expert > 1.0, 2.0 * all_gather_s(links, (Axis.EXPERT,), moved), 0.0)
    merged = tokens * arch.heads * arch.head_dim * 4.0 / z.tensor
    context = np.where(z.context > 1.0, 2.0 * all_gather_s(links, (Axis.CONTEXT,), merged), 0.0)
    layers = z.layers * (tensor + (expert if arch.experts else 0.0) + context)
    return layers + send_s(links, Axis.PIPELINE, whole)


def _prefill_s(
    table: LayoutTable, workload: Workload, arch: Architecture, z: Sizes, chip: Chip, links: Links,
    prompt: float, constants: Constants,
) -> FloatColumn:
    """One prompt of `prompt` tokens through one replica: matmuls and causal attention at their
    efficiencies, never faster than the weights are read, and the collectives in every layer."""
    tokens = prompt / z.context
    peak = peak_flops_per_s(chip, workload.precision.compute)
    width = np.maximum(arch.active_mlp_width / z.tensor, 1.0)
    matmul = 2.0 * tokens * arch.active_parameters / z.tensor
    matmul = matmul / (peak * local_efficiency(width, tokens, constants))
    read = dtype_bytes(workload.precision.weights) * arch.total_parameters / (z.tensor * z.expert)
    read = read / (chip.hbm_bandwidth_bytes_per_s * constants.hbm_efficiency)
    heads = np.ceil(arch.heads / z.tensor)
    scores = 4.0 * tokens * arch.attended_tokens(int(prompt)) * heads * arch.head_dim * arch.layers
    attention = scores / (peak * constants.attention_efficiency)
    waits = z.pipeline * _layer_waits_s(table, workload, arch, z, links, tokens, constants, 1.0)
    overhead = arch.layers * constants.layer_latency_s + constants.serving_overhead_s
    return np.maximum(matmul, read) + attention + waits + overhead
