"""Serving: rooflines of a prefill step and of a decode step, and the throughput of all replicas.

`data` counts replicas. Every function returns float64[n]; b is the sequences that decode together
on one replica, t the tensor degree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.collectives import all_gather_s, send_s
from prompts_agent.estimate.compute import local_efficiency
from prompts_agent.estimate.setting import Setting
from prompts_agent.estimate.sizes import dtype_bytes, sequences_per_replica
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Phase

__all__ = ["serving_times", "touched_experts"]

FloatColumn = NDArray[np.float64]


def touched_experts(experts: int, experts_per_token: int, tokens: FloatColumn) -> FloatColumn:
    """Experts whose weights a step of `tokens` tokens reads, routing taken as uniform:
    `E × (1 - (1 - k/E)^tokens)`. 8 experts, 2 a token, 1 token: 2; many tokens: 8.
    """
    if experts == 0:
        return np.zeros_like(tokens)
    return np.asarray(experts * (1.0 - (1.0 - experts_per_token / experts) ** tokens))


def serving_times(at: Setting, kv_cache_bytes: FloatColumn) -> dict[str, FloatColumn]:
    """`ttft_s`, `tpot_s`, `tokens_per_s` (all replicas; input tokens for prefill, else output
    tokens), and what the phase's step is made of: the parts of `_prefill_step` for prefill, whose
    sum is TTFT; else those of `_decode_step`, and in mixed serving `prefill_s`, whose sum is TPOT.

    Mixed serving alternates: while b sequences each write `output` tokens, b prompts are prefilled,
    so a token costs `TPOT + b × prefill ÷ output`. A pipeline of p stages splits the batch into p
    microbatches: a token passes all stages, and each is busy with another microbatch meanwhile.
    """
    workload, stages = at.workload, at.sizes.pipeline
    sequences = sequences_per_replica(at.table, workload)
    replicas = at.table.batch_shards.astype(np.float64)
    step = _decode_step(at, sequences, kv_cache_bytes)
    decode = np.sum(list(step.values()), axis=0)
    prompt = float(workload.traffic.input_tokens if workload.traffic else workload.sequence)
    prompt_step = _prefill_step(at, prompt)
    prefill = np.sum(list(prompt_step.values()), axis=0)
    if workload.phase is Phase.PREFILL:
        rate = replicas * stages * prompt / prefill
        return {"ttft_s": prefill, "tpot_s": decode, "tokens_per_s": rate, **prompt_step}
    if workload.phase is Phase.DECODE:
        rate = replicas * sequences / decode
        return {"ttft_s": prefill, "tpot_s": decode, "tokens_per_s": rate, **step}
    output = float(workload.traffic.output_tokens if workload.traffic else workload.sequence)
    step["prefill_s"] = sequences * prefill / (output * stages)
    token = decode + step["prefill_s"]
    # A prompt waits for the step that runs when it comes, on average half of one.
    first = prefill + 0.5 * decode
    return {"ttft_s": first, "tpot_s": token, "tokens_per_s": replicas * sequences / token, **step}


def _decode_step(
    at: Setting, sequences: FloatColumn, kv_cache_bytes: FloatColumn
) -> dict[str, FloatColumn]:
    """One token for every sequence. Weights and cache are read once from HBM (Pope et al., arXiv
    2211.05102, section 2); the matmuls' FLOP count where they take longer than the weights' read.
    """
    arch, z, constants = at.arch, at.sizes, at.constants
    micro = np.ceil(sequences / z.pipeline)
    groups = np.maximum(at.table.attention_data.astype(np.float64), 1.0)
    touched = touched_experts(arch.experts, arch.experts_per_token, micro * z.expert)
    expert = arch.expert_layer_parameters * touched / max(arch.experts, 1)
    dense = arch.attention_layer_parameters * groups + arch.dense_mlp_layer_parameters
    expert = expert / (z.expert * z.expert_tensor * constants.serving_expert_efficiency)
    held = z.layers * (dense / z.tensor + expert)
    held = held + arch.vocab * arch.embed / (z.tensor * z.pipeline)
    hbm = at.chip.hbm_bandwidth_bytes_per_s * constants.serving_hbm_efficiency
    weights = dtype_bytes(at.workload.precision.weights) * held / hbm
    flops = 2.0 * micro * (arch.active_parameters / z.pipeline) / z.tensor
    matmul = flops / (at.peak_flops_per_s * constants.serving_matmul_efficiency)
    launches = z.layers * constants.layer_latency_s
    return {
        "weights_s": z.pipeline * weights,
        "kv_s": kv_cache_bytes / hbm,
        "compute_s": z.pipeline * np.maximum(matmul - weights, 0.0),
        "exposed_s": z.pipeline * _stage_waits_s(at, micro, groups),
        "overhead_s": z.pipeline * launches + constants.serving_overhead_s,
    }


def _stage_waits_s(at: Setting, tokens: FloatColumn, groups: FloatColumn) -> FloatColumn:
    """Collectives of one stage for `tokens` tokens: two all-reduces a layer over tensor (with
    attention_data, one round the mlp and one inside a group), all-to-alls over expert, context's
    partial softmax, and the send to the next stage. Nothing hides them in a decode step.
    """
    arch, z, links = at.arch, at.sizes, at.links
    whole = tokens * arch.embed * at.element_bytes
    reduce = 2.0 * all_gather_s(links, (Axis.TENSOR,), whole)
    reduce = reduce + at.constants.reduce_latency_s * np.log2(z.tensor)
    times = np.where(groups > 1.0, 1.0 + (z.tensor > groups), 2.0)
    layer = np.where(z.tensor > 1.0, times * reduce, 0.0)
    if arch.experts:
        moved = whole * arch.experts_per_token * arch.expert_layer_share
        exchange = 2.0 * all_gather_s(links, (Axis.EXPERT,), moved)
        layer = layer + np.where(z.expert > 1.0, exchange, 0.0)
    merged = tokens * arch.heads * arch.head_dim * 4.0 / z.tensor
    merge = 2.0 * all_gather_s(links, (Axis.CONTEXT,), merged)
    layer = layer + np.where(z.context > 1.0, merge, 0.0)
    return z.layers * layer + send_s(links, Axis.PIPELINE, whole)


def _prefill_step(at: Setting, prompt: float) -> dict[str, FloatColumn]:
    """One prompt of `prompt` tokens through one replica: matmuls and causal attention at their
    efficiencies, never faster than the weights are read, and the collectives in every layer.
    """
    arch, z, constants = at.arch, at.sizes, at.constants
    tokens = prompt / z.context
    width = np.maximum(arch.active_mlp_width / z.tensor, 1.0)
    share = local_efficiency(width, tokens, constants)
    share = share * constants.serving_matmul_efficiency / constants.matmul_efficiency
    matmul = 2.0 * tokens * arch.active_parameters / (z.tensor * at.peak_flops_per_s * share)
    size = dtype_bytes(at.workload.precision.weights)
    experts = arch.layers * arch.expert_layer_parameters
    held = (arch.total_parameters - experts) / z.tensor + experts / (z.expert * z.expert_tensor)
    hbm = at.chip.hbm_bandwidth_bytes_per_s * constants.serving_hbm_efficiency
    read = size * held / hbm
    scores = 4.0 * tokens * arch.attended_tokens(int(prompt)) * arch.head_dim * arch.layers
    heads = np.ceil(arch.heads / z.tensor)
    overhead = arch.layers * constants.layer_latency_s + constants.serving_overhead_s
    return {
        "compute_s": np.maximum(matmul, read),
        "attention_s": scores * heads / (at.peak_flops_per_s * constants.attention_efficiency),
        "exposed_s": z.pipeline * _stage_waits_s(at, tokens, np.ones_like(tokens)),
        "overhead_s": np.full_like(tokens, overhead),
    }
