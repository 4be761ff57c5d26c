"""Program: which reference program stands for a job, how it may differ, and what it cannot be."""

from __future__ import annotations

from prompts_agent.compile.target import Target
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.spec import ModelSpec
from prompts_agent.workload.workload import Phase, Workload

__all__ = ["described", "differences", "unsupported"]


def unsupported(workload: Workload, layout: Layout) -> str | None:
    """Why the reference program cannot stand for this job; None where it can."""
    if workload.model.encoder_layers:
        return "The reference program has no encoder; encoder-decoder models are not compiled."
    if layout.mesh.size(Axis.PIPELINE) > 1:
        return (
            "The reference program has no pipeline stages: the framework makes their schedule, "
            "not the compiler. Compile one stage as a model with fewer layers instead."
        )
    if layout.expert_divides and layout.mesh.size(Axis.EXPERT) > 1:
        return (
            "An expert axis that divides data × fsdp × context × tensor is no axis of a jax mesh. "
            "Set expert_divides to false to compile the layout of a jax framework."
        )
    if layout.devices != workload.topology.devices:
        return (
            f"The layout takes {layout.devices} devices and {workload.topology} has "
            f"{workload.topology.devices}."
        )
    return None


def described(workload: Workload, layout: Layout, target: Target) -> str:
    """One sentence: what was compiled."""
    precision, model = workload.precision, workload.model
    attention = {"splash": "splash attention", "cudnn": "cuDNN attention"}.get(
        target.kernel, "blocked attention"
    )
    if workload.phase.is_training:
        return (
            f"A training step of {model.name} in JAX: layers by scan, remat {layout.remat}, "
            f"{attention}, weights {precision.weights}, gradients {precision.gradients}, "
            f"{precision.optimizer_slots} optimizer slots in {precision.optimizer_state}, "
            f"{workload.global_batch} sequences of {workload.sequence} tokens."
        )
    step = "A prefill step" if workload.phase is Phase.PREFILL else "A decode step"
    return (
        f"{step} of {model.name} in JAX: layers by scan, weights {precision.weights}, a KV cache "
        f"in {layout.kv_dtype} of {workload.global_batch} sequences of {workload.sequence} tokens, "
        "updated in place."
    )


def differences(workload: Workload, layout: Layout) -> tuple[str, ...]:
    """How the user's own program may differ from the reference, one sentence each."""
    found = [
        "Your framework may hold activations to other axes, keep other activations under a remat "
        "policy of the same name, or use another attention kernel.",
    ]
    if find_chip(workload.topology.chip).platform == "tpu":
        found.append("The windowed einsum (collective matmul) is off, as in published v6e recipes.")
    found += _of_model(workload.model, training=workload.phase.is_training)
    if workload.phase.is_training:
        found += _of_training(workload, layout)
    else:
        found.append("A server's cache is paged and its batch ragged; here all sequences are full.")
    if workload.phase is Phase.SERVE:
        found.append("Mixed serving is judged by its decode step.")
    return tuple(found)


def _of_model(model: ModelSpec, *, training: bool) -> list[str]:
    found = []
    if model.moe is not None:
        found.append(
            "Experts take a fixed number of tokens: 1.25 times the even share in training and "
            "prefill (dropping), all of them in decode. A dropless kernel needs other buffers."
        )
    if model.chunked or (model.sliding_window is not None and training):
        found.append("Windows slide; chunks that start afresh are compiled as sliding windows.")
    if model.position_buckets or model.sinks or model.embedding_norm or model.head_bias:
        found.append("Relative bias, sinks, an embedding norm and a head's bias are left out.")
    return found


def _of_training(workload: Workload, layout: Layout) -> list[str]:
    found = []
    if workload.precision.gradients != workload.precision.weights:
        found.append(
            f"Gradients in {workload.precision.gradients} are taken of a copy of the weights in "
            "that dtype; where your framework casts layer by layer, the copy is not there."
        )
    if layout.remat is Remat.MINIMAL:
        found.append(
            "Remat minimal keeps q, k, v, attention's output, its projection and the mlp's inputs."
        )
    return found
