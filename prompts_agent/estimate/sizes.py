"""Sizes: what one device holds and handles under each layout, before any formula is applied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.architecture import Architecture
from prompts_agent.layout.layout import PipelineSchedule
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import SCHEDULES, LayoutTable
from prompts_agent.workload.workload import Workload

__all__ = ["Sizes", "dtype_bytes", "given_sequences", "sequences_per_replica", "sizes"]

FloatColumn = NDArray[np.float64]

_DTYPE_BYTES = {
    "fp32": 4.0, "float32": 4.0, "tf32": 4.0,
    "bf16": 2.0, "bfloat16": 2.0, "fp16": 2.0, "float16": 2.0,
    "fp8": 1.0, "int8": 1.0, "float8": 1.0,
    "fp4": 0.5, "int4": 0.5,
}  # fmt: skip


def dtype_bytes(dtype: str) -> float:
    """Bytes of one element; a dtype that is not known by name counts as 2 bytes if it has a "16",
    1 if an "8", 0.5 if a "4" (e5m2fn → 2 is never asked for), else 4.
    """
    if dtype in _DTYPE_BYTES:
        return _DTYPE_BYTES[dtype]
    for digits, size in (("16", 2.0), ("8", 1.0), ("4", 0.5)):
        if digits in dtype:
            return size
    return 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Columns of one length n, float64: degrees, shard counts, and work per device."""

    data: FloatColumn
    fsdp: FloatColumn
    expert: FloatColumn
    pipeline: FloatColumn
    context: FloatColumn
    tensor: FloatColumn
    gathered_shards: FloatColumn
    """Over how many devices a dense weight lies cut that is gathered before use: fsdp, context if
    it shards weights, and expert where that is a factor of the mesh (MaxText cuts `embed` over all
    of them)."""
    expert_gathered_shards: FloatColumn
    """The same for one expert's weights."""
    expert_data: FloatColumn
    """Copies of one expert's weights, over which its optimizer state may be cut (ZeRO-1)."""
    expert_tensor: FloatColumn
    """Over how many tensor ranks one expert is cut: all of them where expert is a factor of the
    mesh. Where it divides the other ranks: in training none (Megatron's expert tensor degree of 1),
    in serving the tensor ranks that expert leaves (vLLM: tensor 8 without expert parallelism cuts
    every expert in 8, expert 8 leaves them whole)."""
    layers: FloatColumn
    """Layers of the fullest pipeline stage."""
    microbatches: FloatColumn
    """Forward passes of a device in one step."""
    in_flight: FloatColumn
    """Microbatches whose activations the first stage holds at once, in stages' worth of layers."""
    tokens: FloatColumn
    """Tokens of one microbatch on one device."""
    kv_tensor: FloatColumn
    """Over how many ranks the keys and values are cut: tensor ranks beyond kv_heads hold copies."""


def sizes(table: LayoutTable, arch: Architecture, *, sequence: int, serving: bool = False) -> Sizes:
    """`Sizes` of every row for sequences of `sequence` tokens.

    Pipeline: 1F1B keeps min(stages, microbatches) microbatches on the first stage; the interleaved
    schedule adds (stages - 1) / (stages × chunks) of that (Korthikanti et al., arXiv 2205.05198,
    section 4.2.1).
    """
    size = {axis: table.size(axis).astype(np.float64) for axis in Axis}
    tensor, context, fsdp = size[Axis.TENSOR], size[Axis.CONTEXT], size[Axis.FSDP]
    expert, data, pipeline = size[Axis.EXPERT], size[Axis.DATA], size[Axis.PIPELINE]
    shared = fsdp * np.where(table.weights_over_context, context, 1.0)
    divides = table.expert_divides
    # 8 ranks of data 4 × tensor 2 with expert 4 hold every expert twice.
    ranks = data * fsdp * context * tensor / expert
    gathered = np.minimum(shared, np.maximum(ranks, 1.0))
    microbatches = table.gradient_accumulation.astype(np.float64)
    interleaved = table.schedule == SCHEDULES.index(PipelineSchedule.INTERLEAVED)
    chunks = np.maximum(table.virtual_stages.astype(np.float64), 1.0)
    parts = np.where(interleaved, chunks, 1.0)
    extra = np.where(interleaved, 1.0 + (pipeline - 1.0) / (pipeline * chunks), 1.0)
    return Sizes(
        data=data,
        fsdp=fsdp,
        expert=expert,
        pipeline=pipeline,
        context=context,
        tensor=tensor,
        gathered_shards=shared * np.where(divides, 1.0, expert),
        expert_gathered_shards=np.where(divides, gathered, shared),
        # Ranks that an expert is gathered over hold parts of one copy.
        expert_data=np.where(divides, np.maximum(ranks / gathered, 1.0), data),
        expert_tensor=np.where(
            divides, np.maximum(tensor / expert, 1.0) if serving else 1.0, tensor
        ),
        layers=np.ceil(arch.layers / (pipeline * parts)) * parts,
        microbatches=microbatches,
        in_flight=np.where(pipeline > 1.0, np.minimum(pipeline, microbatches) * extra, 1.0),
        tokens=table.microbatch * (sequence / context),
        kv_tensor=np.minimum(tensor, float(arch.kv_heads)),
    )


def given_sequences(table: LayoutTable, workload: Workload) -> FloatColumn:
    """The workload's sequences over the replicas, float64[n]."""
    return np.asarray(np.ceil(workload.global_batch / table.batch_shards.astype(np.float64)))


def sequences_per_replica(table: LayoutTable, workload: Workload) -> FloatColumn:
    """b: the workload's sequences over the replicas, at most `batch_limit`."""
    share = given_sequences(table, workload)
    limit = table.batch_limit.astype(np.float64)
    return np.where(limit > 0, np.minimum(share, limit), share)
