"""Program: which reference program stands for a job, how it may differ, and what it cannot be."""

from __future__ import annotations

from prompts_agent.compile.dropless import is_dropless
from prompts_agent.compile.encoder import encoder_tokens
from prompts_agent.compile.expert_axis import divides, taken_ranks
from prompts_agent.compile.stage import in_stages, no_stage
from prompts_agent.compile.target import Target
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.spec import ModelSpec
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Phase, Workload

__all__ = ["described", "differences", "kernel_for", "unsupported"]


_CUDNN_HEAD_DIM = 128


def unsupported(workload: Workload, layout: Layout) -> str | None:
    """Why the reference program cannot stand for this job; None where it can."""
    if layout.mesh.size(Axis.PIPELINE) > 1:
        reason = no_stage(workload, layout)
        if reason is not None:
            return reason
    if layout.devices != workload.topology.devices:
        return (
            f"The layout takes {layout.devices} devices and {workload.topology} has "
            f"{workload.topology.devices}."
        )
    return None


def kernel_for(target: Target, model: ModelSpec) -> str:
    """The attention that is built: cuDNN's takes head dims of up to 128 in steps of 8."""
    wide = max(model.qk_head_dim, model.v_head_dim)
    if target.kernel == "cudnn" and (wide > _CUDNN_HEAD_DIM or wide % 8):
        return "blocked"
    return target.kernel


def described(workload: Workload, layout: Layout, target: Target) -> str:
    """One sentence: what was compiled."""
    precision, model = workload.precision, workload.model
    attention = {"splash": "splash attention", "cudnn": "cuDNN attention"}.get(
        kernel_for(target, model), "blocked attention"
    )
    if workload.phase.is_training:
        return (
            f"A training step of {model.name} in JAX: layers by scan, remat {layout.remat}, "
            f"{attention}, weights {precision.weights}, gradients {precision.gradients}, "
            f"{precision.optimizer_slots} optimizer slots in {precision.optimizer_state}, "
            f"{workload.global_batch} sequences of {workload.sequence} tokens."
        )
    if model.encoder_layers:
        return _described_encoder(workload, layout)
    step = "A prefill step" if workload.phase is Phase.PREFILL else "A decode step"
    return (
        f"{step} of {model.name} in JAX: layers by scan, weights {precision.weights}, a KV cache "
        f"in {layout.kv_dtype} of {workload.global_batch} sequences of {workload.sequence} tokens, "
        "updated in place."
    )


def _described_encoder(workload: Workload, layout: Layout) -> str:
    read = encoder_tokens(workload)
    step = (
        "A prefill step (the encoder, and the decoder's first token)"
        if workload.phase is Phase.PREFILL
        else "A decode step"
    )
    return (
        f"{step} of {workload.model.name} in JAX: layers by scan, weights "
        f"{workload.precision.weights}, a KV cache in {layout.kv_dtype} of "
        f"{workload.global_batch} sequences, each of {read} tokens that the encoder has read and "
        f"{max(1, workload.sequence - read)} of the decoder's own, updated in place."
    )


def differences(workload: Workload, layout: Layout) -> tuple[str, ...]:
    """How the user's own program may differ from the reference, one sentence each."""
    found = [
        "Your framework may hold activations to other axes, keep other activations under a remat "
        "policy of the same name, or use another attention kernel.",
    ]
    if find_chip(workload.topology.chip).platform == "tpu":
        found.append("The windowed einsum (collective matmul) is off, as in published v6e recipes.")
    if workload.precision.compute in ("fp8", "float8", "int8", "int4", "fp4"):
        found.append(
            f"Matmuls in {workload.precision.compute} are compiled in bf16, which is what lies "
            "between them."
        )
    found += _of_model(workload.model, training=workload.phase.is_training)
    found += _of_experts(workload, layout)
    if workload.phase.is_training:
        found += _of_training(workload, layout)
    else:
        found += _of_serving(workload, layout)
    return tuple(found)


def _of_model(model: ModelSpec, *, training: bool) -> list[str]:
    found = []
    if model.chunked or (model.sliding_window is not None and training):
        found.append("Windows slide; chunks that start afresh are compiled as sliding windows.")
    if model.position_buckets or model.sinks or model.embedding_norm or model.head_bias:
        found.append("Relative bias, sinks, an embedding norm and a head's bias are left out.")
    return found


def _of_experts(workload: Workload, layout: Layout) -> list[str]:
    if workload.model.moe is None:
        return []
    if not is_dropless(workload, layout):
        return [
            "Experts take a fixed number of tokens, 1.25 times the even share, and drop the rest. "
            "If yours drop nothing, say `dropless: true` in the workload."
        ]
    found = [
        "Experts drop nothing, by a grouped matmul; buffers have room for even routing, and where "
        "tokens crowd a rank yours are larger."
    ]
    if workload.phase.is_training and workload.framework is Framework.MAXTEXT:
        # Its `ragged_buffer_factor` is -1 unless set.
        found.append(
            "MaxText has room for the worst routing where experts are cut, unless "
            "ragged_buffer_factor says otherwise; here it is that of 1."
        )
    if find_chip(workload.topology.chip).platform == "gpu":
        found.append(
            "XLA has no grouped matmul for GPUs: a batched one stands for it, with as many rows "
            "for each expert."
        )
    elif workload.phase.is_training:
        # libtpu 0.0.42.1: kernels for rows × weights, none for the gradients of weights.
        found.append(
            "XLA has no grouped matmul for the gradients of experts: it multiplies all rows for "
            "each expert of a device, which a framework's own kernel does not."
        )
    if divides(layout):
        over = " × ".join(f"{name} {size}" for name, size in taken_ranks(layout).items())
        found.append(f"Experts are cut over these ranks, innermost first: {over}.")
    return found


def _of_serving(workload: Workload, layout: Layout) -> list[str]:
    found = ["A server's cache is paged and its batch ragged; here all sequences are full."]
    if layout.mesh.size(Axis.PIPELINE) > 1:
        found.append(
            "One stage is compiled, the fullest, with the embedding and the output table, and all "
            "sequences at once; its step is that of one stage."
        )
        found += _of_unlike_stages(workload, layout)
    if workload.phase is Phase.SERVE:
        found.append("Mixed serving is judged by its decode step.")
    return found


def _of_unlike_stages(workload: Workload, layout: Layout) -> list[str]:
    """Where the stages are not alike, that each is compiled like the fullest."""
    model, stages = workload.model, layout.mesh.size(Axis.PIPELINE)
    alike = in_stages(workload, layout)[0].model
    each = alike.layers // (stages if workload.phase.is_training else 1)
    found = []
    if each * stages != model.layers:
        found.append(
            f"{model.layers} layers fill {stages} stages unequally; every stage is compiled like "
            f"the fullest, {each * stages} layers in all."
        )
    if model.moe is not None and model.moe.dense_layers:
        found.append(
            f"The {model.moe.dense_layers} dense layers at the start are compiled as layers with "
            "experts, which are larger."
        )
    return found


def _of_training(workload: Workload, layout: Layout) -> list[str]:
    found = []
    if workload.model.encoder_layers:
        found.append(
            f"Encoder and decoder read {workload.sequence} tokens each; where your inputs and "
            "targets differ in length, so does what is kept of them."
        )
    if workload.precision.gradients != workload.precision.weights:
        found.append(
            f"Gradients in {workload.precision.gradients} are taken of a copy of the weights in "
            "that dtype; where your framework casts layer by layer, the copy is not there."
        )
    if layout.mesh.size(Axis.PIPELINE) > 1:
        found.append(
            "Microbatches go through the stages one at a time: each stage then keeps as many as "
            "the first does under 1F1B, so the memory is that of 1F1B, and the step is longer than "
            "any schedule's. Every stage has the embedding and a part of the logits."
        )
        found += _of_unlike_stages(workload, layout)
    if layout.remat is Remat.MINIMAL:
        found.append(
            "Remat minimal keeps q, k, v, attention's output, its projection and the mlp's inputs."
        )
    return found
