"""Bytes of HBM that a server needs on one device, and how many sequences its cache has room for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.activations import activation_bytes_per_token
from prompts_agent.estimate.setting import Setting
from prompts_agent.estimate.sizes import dtype_bytes, sequences_per_replica
from prompts_agent.estimate.weights import parameter_bytes
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.table import KV_DTYPES
from prompts_agent.serving.traffic import held_tokens
from prompts_agent.workload.workload import Phase

__all__ = ["cache_bytes", "cache_room", "cached_tokens", "running_sequences", "serving_memory"]

FloatColumn = NDArray[np.float64]

# What servers give to weights, work and cache together: vLLM's gpu_memory_utilization and
# TensorRT-LLM's kv_cache_free_gpu_mem_fraction are 0.9 unless set.
_SERVER_SHARE = 0.9


def serving_memory(at: Setting, sequences: FloatColumn) -> dict[str, FloatColumn]:
    """Term → bytes per device, float64[n], while a replica works on `sequences`; without what the
    allocator loses.
    """
    return {**_fixed(at, sequences), "kv_cache": cache_bytes(at, sequences)}


def running_sequences(at: Setting) -> FloatColumn:
    """b: sequences that one replica works on at once, float64[n].

    The workload's over the replicas, at most `batch_limit`. A server of mixed traffic takes no more
    than its cache has room for, at least one; the rest wait (arXiv 2309.06180, section 4.5).
    """
    share = sequences_per_replica(at.table, at.workload)
    if at.workload.phase is not Phase.SERVE:
        return share
    return np.minimum(share, np.maximum(cache_room(at), 1.0))


def cache_room(at: Setting) -> FloatColumn:
    """Sequences whose cache fits beside the weights, float64[n]; 0 where the weights do not fit.

    llama3-70b in bf16 over 2 H100s: 0.9 × 80 GiB leave little more than the 71 GB of its weights.
    """
    usable = float(at.chip.usable_hbm_bytes or at.chip.hbm_bytes) * _SERVER_SHARE
    share = sequences_per_replica(at.table, at.workload)
    held = np.sum(list(_fixed(at, share).values()), axis=0)
    room = (usable - at.constants.workspace_bytes) / (1.0 + at.constants.fragmentation) - held
    return np.asarray(np.floor(np.maximum(room, 0.0) / _sequence_bytes(at)) * at.groups)


def cached_tokens(at: Setting) -> float:
    """Tokens that a sequence's cache holds: in mixed serving on average over its decoding."""
    workload = at.workload
    if workload.phase is Phase.SERVE and workload.traffic is not None:
        return held_tokens(workload.traffic)
    return float(workload.sequence)


def _fixed(at: Setting, sequences: FloatColumn) -> dict[str, FloatColumn]:
    """A decode step holds one token of every sequence, a prefill step one prompt at least."""
    workload = at.workload
    prompt = float(workload.traffic.input_tokens if workload.traffic else workload.sequence)
    decodes = workload.phase is Phase.DECODE
    tokens = sequences if decodes else np.maximum(sequences, prompt)
    return {
        "weights": _weights(at),
        "activations": tokens / at.sizes.context * activation_bytes_per_token(at, Remat.NONE),
        "logits": sequences * at.arch.vocab / at.sizes.tensor * 4.0,
    }


def _weights(at: Setting) -> FloatColumn:
    """`P × bytes ÷ (t × p)`, experts over the expert axis; data holds replicas. Groups of
    attention_data hold the attention's weights once each.
    """
    size = dtype_bytes(at.workload.precision.weights)
    attention = at.sizes.layers * at.arch.attention_layer_parameters / at.sizes.tensor
    return parameter_bytes(at, size) + size * attention * (at.groups - 1.0)


def cache_bytes(at: Setting, sequences: FloatColumn) -> FloatColumn:
    """The cache of `sequences` on one device of a replica, float64[n]."""
    return np.ceil(sequences / at.groups) * _sequence_bytes(at)


def _sequence_bytes(at: Setting) -> FloatColumn:
    """`bytes of a sequence's cache ÷ (p × kv shards × context)`.

    The cache is cut over tensor up to kv_heads, and over context; beyond kv_heads ranks hold
    copies, unless attention_data splits the sequences over them (vLLM's data-parallel attention).
    A latent (MLA) has no heads to cut: every rank of a group holds it whole.
    """
    arch, z = at.arch, at.sizes
    ranks = np.clip(z.tensor / at.groups, 1.0, float(arch.kv_heads))
    ranks = np.where(arch.kv_has_heads, ranks, 1.0)
    size = np.array([dtype_bytes(name) for name in KV_DTYPES])[at.table.kv_dtype]
    return arch.kv_elements(int(cached_tokens(at))) * size / (z.pipeline * z.context * ranks)
