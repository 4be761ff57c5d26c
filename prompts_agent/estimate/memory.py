"""Bytes of HBM that one device needs, term by term.

Every function returns float64[n], bytes per device. P is a parameter count, L layers, T the tokens
of one microbatch on one device, t the tensor degree, p the pipeline degree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.architecture import Architecture, architecture
from prompts_agent.estimate.calibration import Constants
from prompts_agent.estimate.sizes import Sizes, dtype_bytes, sequences_per_replica, sizes
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.table import KV_DTYPES, REMATS, LayoutTable
from prompts_agent.workload.workload import Precision, Workload

__all__ = ["activation_bytes_per_token", "memory"]

FloatColumn = NDArray[np.float64]


def memory(table: LayoutTable, workload: Workload, constants: Constants) -> dict[str, FloatColumn]:
    """Term → bytes per device, float64[n]; the terms are disjoint and their sum is the need.

    Training: `weights`, `gradients`, `optimizer`, `gathered_weights`, `activations`, `layer_work`,
    `logits`, `workspace`. Serving: `weights`, `kv_cache`, `activations`, `logits`, `workspace`.
    """
    arch = architecture(workload.model)
    z = sizes(table, arch, sequence=workload.sequence)
    if workload.phase.is_training:
        terms = _training(table, workload.precision, arch, z, constants)
    else:
        terms = _serving(table, workload, arch, z)
    held = np.sum(list(terms.values()), axis=0)
    return {**terms, "workspace": constants.workspace_bytes + constants.fragmentation * held}


def _training(
    table: LayoutTable, precision: Precision, arch: Architecture, z: Sizes, constants: Constants
) -> dict[str, FloatColumn]:
    layer, table_in_use = _gathered(precision, arch, z)
    work = _layer_work(table, precision, arch, z)
    logits = _logits(arch, z, constants)
    # The need peaks at one of two moments: at the loss (logits, output table) or in the backward
    # pass of a layer (its weights and recomputed activations). What the other holds counts 0.
    at_loss = logits + table_in_use > work + layer
    return {
        "weights": _master_weights(table, precision, arch, z)
        + _compute_copy(table, precision, arch, z),
        "gradients": _parameter_bytes(arch, z, dtype_bytes(precision.gradients)),
        "optimizer": _optimizer(table, precision, arch, z),
        "gathered_weights": np.where(at_loss, table_in_use, layer),
        "activations": _saved(table, precision, arch, z),
        "layer_work": np.where(at_loss, 0.0, work),
        "logits": np.where(at_loss, logits, 0.0),
    }


def _parameter_bytes(
    arch: Architecture, z: Sizes, bytes_per_parameter: float, *, over_data: FloatColumn | float = 1.0,
    over_expert_data: FloatColumn | float = 1.0,
) -> FloatColumn:
    """Bytes of a tensor of the parameters' size: `P × bytes ÷ (p × t × gathered shards × over_data)`.

    Layers lie on stages, the embedding tables on the first and last (counted once); norms and
    other small parameters are whole on every device of a stage.
    """
    dense = z.layers * arch.dense_layer_parameters / (z.tensor * z.gathered_shards * over_data)
    experts = z.layers * arch.expert_layer_parameters
    experts = experts / (z.expert * z.expert_tensor * z.expert_gathered_shards * over_expert_data)
    tables = arch.embedding_parameters / (z.tensor * z.gathered_shards * over_data)
    # With a pipeline, two tables lie on different stages; a tied one is on both.
    held = np.where((z.pipeline > 1.0) & (not arch.tied), tables / 2.0, tables)
    small = z.layers * arch.small_layer_parameters
    return bytes_per_parameter * (dense + experts + held + small)


def _zero(table: LayoutTable, z: Sizes) -> tuple[FloatColumn, FloatColumn]:
    """How often ZeRO-1 cuts optimizer state over the copies: (dense, expert) (arXiv 1910.02054)."""
    on = table.zero_stage >= 1
    # Context ranks that hold whole weights are copies too, as in Megatron's distributed optimizer.
    copies = z.data * np.where(table.weights_over_context, 1.0, z.context)
    return np.where(on, copies, 1.0), np.where(on, z.expert_data, 1.0)


def _master_weights(
    table: LayoutTable, precision: Precision, arch: Architecture, z: Sizes
) -> FloatColumn:
    """Master weights, cut like the optimizer's state (arXiv 1910.02054, section 5.1)."""
    dense, expert = _zero(table, z)
    size = dtype_bytes(precision.weights)
    return _parameter_bytes(arch, z, size, over_data=dense, over_expert_data=expert)


def _compute_copy(
    table: LayoutTable, precision: Precision, arch: Architecture, z: Sizes
) -> FloatColumn:
    """The weights that a forward pass reads, where they are held besides the master weights.

    None where the master weights are gathered layer by layer (fsdp without further cuts). Where
    ZeRO-1 cuts the master weights over copies, or nothing is gathered, the copy stays.
    """
    dense, _ = _zero(table, z)
    stays = (dense > 1.0) | (z.gathered_shards <= 1.0)
    same = precision.weights == precision.compute
    copy = _parameter_bytes(arch, z, dtype_bytes(precision.compute))
    return np.where(stays & ~(np.full_like(dense, same, dtype=bool) & (dense <= 1.0)), copy, 0.0)


def _optimizer(
    table: LayoutTable, precision: Precision, arch: Architecture, z: Sizes
) -> FloatColumn:
    """`slots × bytes` a parameter: AdamW in fp32 8 bytes (arXiv 1910.02054, section 3.1)."""
    dense, expert = _zero(table, z)
    size = precision.optimizer_slots * dtype_bytes(precision.optimizer_state)
    return _parameter_bytes(arch, z, size, over_data=dense, over_expert_data=expert)


def _gathered(
    precision: Precision, arch: Architecture, z: Sizes
) -> tuple[FloatColumn, FloatColumn]:
    """Whole weights in use: (of a layer in the backward pass, of the output table at the loss).

    A layer counts one and a half times: the next is on its way while the last is let go (fitted to
    the compiled needs of `estimate/data/measured.yaml`). Nothing where weights are not gathered.
    """
    size = dtype_bytes(precision.compute)
    layer = arch.dense_layer_parameters / z.tensor
    layer = layer + arch.expert_layer_parameters / (z.expert * z.expert_tensor)
    table = arch.vocab * arch.embed / z.tensor
    gathers = z.gathered_shards > 1.0
    return np.where(gathers, 1.5 * size * layer, 0.0), np.where(gathers, size * table, 0.0)


def activation_bytes_per_token(
    arch: Architecture, remat: Remat, size: float, z: Sizes, *, residual_shards: FloatColumn
) -> FloatColumn:
    """Bytes that one layer keeps of one token for its backward pass.

    After Korthikanti et al., arXiv 2205.05198, section 4, for a pre-norm block with flash
    attention and without dropout: `none` keeps both norms' inputs and outputs, q, k, v, the
    attention's output and its fp32 row sums, and the mlp's matmul outputs and product; `minimal`
    (matmul outputs) keeps the block's input, q, k, v, attention output, projection, and the mlp's
    outputs; `full` keeps the block's input. The residual stream is whole on every tensor rank
    unless sequence_parallel cuts it.
    """
    residual = arch.embed / residual_shards
    heads = arch.heads * arch.head_dim / z.tensor
    keys = 2.0 * arch.kv_heads * arch.head_dim / z.kv_tensor
    mlp = arch.active_mlp_width / z.tensor
    columns = {
        Remat.FULL: residual,
        Remat.MINIMAL: 3.0 * residual + 2.0 * heads + keys + arch.mlp_inputs * mlp,
        Remat.NONE: 4.0 * residual + 2.0 * heads + keys + (arch.mlp_inputs + 1.0) * mlp,
    }
    sums = 4.0 * arch.heads / z.tensor if remat is not Remat.FULL else 0.0
    return size * columns[remat] + sums


def _residual_shards(table: LayoutTable, z: Sizes) -> FloatColumn:
    return np.where(table.sequence_parallel, z.tensor, 1.0)


def _saved(
    table: LayoutTable, precision: Precision, arch: Architecture, z: Sizes
) -> FloatColumn:
    """`T × L ÷ p × microbatches in flight × bytes a token and layer`."""
    size = dtype_bytes(precision.compute)
    shards = _residual_shards(table, z)
    options = [
        activation_bytes_per_token(arch, remat, size, z, residual_shards=shards) for remat in REMATS
    ]
    per_token = np.choose(table.remat, options)
    return z.tokens * z.layers * z.in_flight * per_token


def _layer_work(
    table: LayoutTable, precision: Precision, arch: Architecture, z: Sizes
) -> FloatColumn:
    """What one layer's backward pass holds besides the saved activations: the layer's recomputed
    activations (nothing recomputed under remat none) and the gradients of as many tensors at once
    as its widest product has, three quarters of `T × (2 residuals + mlp inputs)` (fitted to the
    compiled needs of `estimate/data/measured.yaml`). Context ranks gather all keys and values, and
    hold as much of their gradients."""
    size = dtype_bytes(precision.compute)
    shards = _residual_shards(table, z)
    whole = activation_bytes_per_token(arch, Remat.NONE, size, z, residual_shards=shards)
    recomputed = np.choose(table.remat, [0.0 * whole, 0.5 * whole, whole])
    mlp = arch.mlp_inputs * arch.active_mlp_width / z.tensor
    gradients = 0.75 * size * (2.0 * arch.embed / shards + mlp)
    keys = np.where(z.context > 1.0, 2.0 * arch.kv_elements_per_layer / z.kv_tensor, 0.0)
    return z.tokens * (recomputed + gradients + size * keys * z.context)


def _logits(arch: Architecture, z: Sizes, constants: Constants) -> FloatColumn:
    """`T × vocab ÷ t × bytes`: logits, softmax and its gradient, at once.

    fp32 logits and fp32 gradient are 8 bytes and a bf16 copy 2; XLA for TPU fuses the softmax and
    holds one bf16 copy (see the constant's source).
    """
    return z.tokens * arch.vocab / z.tensor * constants.logits_bytes


def _serving(
    table: LayoutTable, workload: Workload, arch: Architecture, z: Sizes
) -> dict[str, FloatColumn]:
    precision = workload.precision
    size = dtype_bytes(precision.compute)
    sequences = sequences_per_replica(table, workload)
    prompt = float(workload.traffic.input_tokens if workload.traffic else workload.sequence)
    # A prefill step handles one prompt at a time; a decode step one token of every sequence.
    tokens = np.where(workload.phase == "decode", sequences, np.maximum(sequences, prompt))
    tokens = tokens / z.context
    shards = np.ones_like(z.tensor)
    work = activation_bytes_per_token(arch, Remat.NONE, size, z, residual_shards=shards)
    return {
        "weights": _serving_weights(table, precision, arch, z),
        "kv_cache": _kv_cache(table, workload, arch, z, sequences),
        "activations": tokens * work,
        "logits": sequences * arch.vocab / z.tensor * 4.0,
    }


def _serving_weights(
    table: LayoutTable, precision: Precision, arch: Architecture, z: Sizes
) -> FloatColumn:
    """`P × bytes ÷ (t × p)`, experts over the expert axis; data holds replicas. Groups of
    attention_data hold the attention's weights once each."""
    size = dtype_bytes(precision.weights)
    groups = np.maximum(table.attention_data.astype(np.float64), 1.0)
    copies = z.layers * arch.attention_layer_parameters * (groups - 1.0) / z.tensor
    return _parameter_bytes(arch, z, size) + size * copies


def _kv_cache(
    table: LayoutTable, workload: Workload, arch: Architecture, z: Sizes, sequences: FloatColumn
) -> FloatColumn:
    """`sequences × bytes of a sequence's cache ÷ (p × kv shards × context)`.

    The cache is cut over tensor up to kv_heads, and over context; beyond kv_heads ranks hold
    copies, unless attention_data splits the sequences over them (vLLM's data-parallel attention).
    """
    groups = np.maximum(table.attention_data.astype(np.float64), 1.0)
    ranks = np.minimum(z.tensor / groups, float(arch.kv_heads))
    size = np.array([dtype_bytes(name) for name in KV_DTYPES])[table.kv_dtype]
    # MLA's latent has no heads to cut: every tensor rank of a group holds it whole.
    ranks = np.where(arch.kv_has_heads, np.maximum(ranks, 1.0), 1.0)
    sequence = arch.kv_elements(workload.sequence) * size / (z.pipeline * z.context)
    return np.ceil(sequences / groups) * sequence / ranks
