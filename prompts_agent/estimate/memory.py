"""Bytes of HBM that one device needs, term by term.

Every function returns float64[n], bytes per device. P is a parameter count, L layers, T the tokens
of one microbatch on one device, t the tensor degree, p the pipeline degree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.activations import activation_bytes_per_token
from prompts_agent.estimate.calibration import Calibration, load_calibration
from prompts_agent.estimate.memory_serving import running_sequences, serving_memory
from prompts_agent.estimate.setting import Setting, setting
from prompts_agent.estimate.sizes import dtype_bytes
from prompts_agent.estimate.weights import parameter_bytes
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.table import REMATS, LayoutTable
from prompts_agent.workload.workload import Workload

__all__ = ["memory", "memory_terms"]

FloatColumn = NDArray[np.float64]

_RECOMPUTED = {Remat.NONE: 0.0, Remat.MINIMAL: 0.5, Remat.FULL: 1.0, Remat.OFFLOAD: 1.0}


def memory(
    table: LayoutTable, workload: Workload, *, calibration: Calibration | None = None
) -> dict[str, FloatColumn]:
    """Term → bytes per device, float64[n]; the terms are disjoint and their sum is the need.

    Training: `weights`, `gradients`, `optimizer`, `gathered_weights`, `activations`, `layer_work`,
    `logits`, `workspace`. Serving: `weights`, `kv_cache`, `activations`, `logits`, `workspace`.
    """
    return memory_terms(setting(table, workload, calibration or load_calibration()))


def memory_terms(at: Setting) -> dict[str, FloatColumn]:
    """`memory` of a setting that is there already."""
    if at.workload.phase.is_training:
        terms = _training(at)
    else:
        terms = serving_memory(at, running_sequences(at))
    held = np.sum(list(terms.values()), axis=0)
    lost = at.constants.workspace_bytes + at.constants.fragmentation * held
    return {**terms, "workspace": lost}


def _training(at: Setting) -> dict[str, FloatColumn]:
    precision = at.workload.precision
    layer, output_table = _gathered(at)
    work, logits = _layer_work(at), _logits(at)
    # The need peaks at one of two moments: at the loss (logits, output table) or in the backward
    # pass of a layer (its weights and recomputed activations). What the other holds counts 0.
    at_loss = logits + output_table > work + layer
    return {
        "weights": _master_weights(at) + _compute_copy(at),
        "gradients": _whole_where_kept(at, dtype_bytes(precision.gradients)),
        "optimizer": _optimizer(at),
        "gathered_weights": np.where(at_loss, output_table, layer),
        "activations": _saved(at),
        "layer_work": np.where(at_loss, 0.0, work),
        "logits": np.where(at_loss, logits, 0.0),
    }


def _whole_where_kept(at: Setting, bytes_per_parameter: float) -> FloatColumn:
    """A tensor of the parameters' size, cut as they are; whole on every fsdp rank where weights
    are gathered once a step, and gradients reduce-scattered once.
    """
    cut = parameter_bytes(at, bytes_per_parameter)
    shards = at.sizes.gathered_shards
    return np.where(at.weights_kept, cut * shards, cut)


def _zero_copies(at: Setting) -> tuple[FloatColumn, FloatColumn]:
    """Over how many copies ZeRO-1 cuts optimizer state: (dense, expert) (arXiv 1910.02054).

    Context ranks that hold whole weights are copies too, as in Megatron's distributed optimizer.
    """
    on, z = at.table.zero_stage >= 1, at.sizes
    dense = z.data * np.where(at.table.weights_over_context, 1.0, z.context)
    return np.where(on, dense, 1.0), np.where(on, z.expert_data, 1.0)


def _master_weights(at: Setting) -> FloatColumn:
    """Master weights, cut like the optimizer's state (arXiv 1910.02054, section 5.1)."""
    dense, expert = _zero_copies(at)
    size = dtype_bytes(at.workload.precision.weights)
    return parameter_bytes(at, size, copies=dense, expert_copies=expert)


def _compute_copy(at: Setting) -> FloatColumn:
    """The weights that a forward pass reads, where they are held besides the master weights.

    Whole where they are kept for the step.

    None where the master weights are gathered layer by layer (fsdp without further cuts), or are
    what the forward pass reads. Where ZeRO-1 cuts them over copies, or nothing is gathered, the
    copy stays.
    """
    precision = at.workload.precision
    cut = _zero_copies(at)[0] > 1.0
    cast = (at.sizes.gathered_shards <= 1.0) & (precision.weights != precision.compute)
    copy = _whole_where_kept(at, at.element_bytes)
    return np.where(cut | cast | at.weights_kept, copy, 0.0)


def _optimizer(at: Setting) -> FloatColumn:
    """`slots × bytes` a parameter: AdamW in fp32 8 bytes (arXiv 1910.02054, section 3.1)."""
    dense, expert = _zero_copies(at)
    precision = at.workload.precision
    size = precision.optimizer_slots * dtype_bytes(precision.optimizer_state)
    return parameter_bytes(at, size, copies=dense, expert_copies=expert)


def _gathered(at: Setting) -> tuple[FloatColumn, FloatColumn]:
    """Whole weights in use: (of a layer in the backward pass, of the output table at the loss).

    A layer counts one and a half times: the next is on its way while the last is let go (fitted to
    the compiled needs of `estimate/data/measured.yaml`). Nothing where weights are not gathered.
    """
    arch, z = at.arch, at.sizes
    layer = arch.dense_layer_parameters / z.tensor
    layer = layer + arch.expert_layer_parameters / (z.expert * z.expert_tensor)
    output = arch.vocab * arch.embed / z.tensor
    gathers, size = (z.gathered_shards > 1.0) & ~at.weights_kept, at.element_bytes
    return np.where(gathers, 1.5 * size * layer, 0.0), np.where(gathers, size * output, 0.0)


def _saved(at: Setting) -> FloatColumn:
    """`T × L ÷ p × microbatches in flight × bytes a token and layer`, of the first stage.

    A compiler's pipeline is a loop that is differentiated whole: every microbatch's activations
    wait for the backward pass, those of the bubble too. The last stage has fewer in flight and the
    logits; the sum of both stands here, because measured peaks of pipelines are nearer to it than
    to the larger of the two (nanotron's 1F1B: +3% against -20% with 4 stages and more).
    """
    z = at.sizes
    options = [activation_bytes_per_token(at, remat) for remat in REMATS]
    loop = np.where(z.pipeline > 1.0, z.microbatches + z.pipeline - 1.0, 1.0)
    in_flight = loop if at.compiled else z.in_flight
    return z.tokens * z.layers * in_flight * np.choose(at.table.remat, options)


def _layer_work(at: Setting) -> FloatColumn:
    """What one layer's backward pass holds besides the saved activations: the layer's recomputed
    activations (all under remat full, half under minimal) and the gradients of as many tensors at
    once as its widest product has, three quarters of `T × (2 residuals + mlp inputs)` (fitted to
    the compiled needs of `estimate/data/measured.yaml`). Context ranks gather all keys and values,
    and hold as much of their gradients.
    """
    arch, z, size = at.arch, at.sizes, at.element_bytes
    whole = activation_bytes_per_token(at, Remat.NONE)
    recomputed = at.by_remat(_RECOMPUTED) * whole
    mlp = arch.mlp_inputs * arch.active_mlp_width / z.tensor
    gradients = 0.75 * size * (2.0 * arch.embed / at.residual_shards + mlp)
    keys = np.where(z.context > 1.0, 2.0 * arch.kv_elements_per_layer / z.kv_tensor, 0.0)
    return z.tokens * (recomputed + gradients + size * keys * z.context)


def _logits(at: Setting) -> FloatColumn:
    """`T × vocab ÷ t × bytes`: logits, softmax and its gradient, at once.

    fp32 logits and fp32 gradient are 8 bytes and a bf16 copy 2; XLA for TPU fuses the softmax and
    holds one bf16 copy (see the constant's source).
    """
    return at.sizes.tokens * at.arch.vocab / at.sizes.tensor * at.constants.logits_bytes
