"""Advice: which buffer dominates a need that is too large, and what removes it."""

from __future__ import annotations

from prompts_agent.compile.outcome import Buffers
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.units import GIB
from prompts_agent.workload.workload import Workload

__all__ = ["advice"]


def advice(
    buffers: Buffers | None, need_bytes: int, limit_bytes: int, layout: Layout, workload: Workload
) -> tuple[str, ...]:
    """Sentences, the one that frees most first; empty where it fits."""
    over = need_bytes - limit_bytes
    if over <= 0:
        return ()
    head = f"It needs {need_bytes / GIB:.2f} GiB of {limit_bytes / GIB:.2f} GiB a device"
    if buffers is None:
        return (f"{head}. Its buffers could not be read.",)
    ordered = sorted(buffers.model_dump().items(), key=lambda item: -item[1])
    named = ordered
    if buffers.activations >= over:
        # What frees saved activations frees the work on them too.
        named = [item for item in ordered if item[0] != "temporaries"]
    largest = [(name, size) for name, size in named if size >= over / 4 and size > 0][:3]
    cures = [_cure(name, size, layout, workload) for name, size in largest]
    name, size = ordered[0]
    first = f"{head}; most of it is {name.replace('_', ' ')} ({size / GIB:.2f} GiB)."
    return (first, *dict.fromkeys(cures))


def _cure(name: str, size: int, layout: Layout, workload: Workload) -> str:
    training = workload.phase.is_training
    match name:
        case "parameters" | "optimizer" | "gradients" if training:
            return _of_state(name, size, layout)
        case "parameters":
            return (
                f"Parameters take {size / GIB:.2f} GiB a device: a larger tensor axis (now "
                f"{layout.mesh.size(Axis.TENSOR)}) cuts them, and so does a smaller dtype."
            )
        case "kv_cache":
            return _of_cache(size, layout, workload)
        case "logits":
            return _of_logits(size, layout)
        case "weights_in_use":
            return (
                f"Casts and gathered weights take {size / GIB:.2f} GiB: a larger tensor axis cuts "
                "what is gathered of a layer at once."
            )
        case _ if training:
            return _of_activations(name, size, layout)
        case _:
            return f"{_label(name)} take {size / GIB:.2f} GiB: serve fewer sequences at once."


def _label(name: str) -> str:
    """What a class of buffers is called at the start of a sentence."""
    return {"optimizer": "Optimizer states"}.get(name, name.replace("_", " ").capitalize())


def _of_state(name: str, size: int, layout: Layout) -> str:
    sharded = layout.mesh.size(Axis.FSDP)
    copies = layout.mesh.size(Axis.DATA)
    if copies > 1 and (layout.zero_stage == 0 or name == "gradients"):
        return (
            f"{_label(name)} take {size / GIB:.2f} GiB and lie whole on {copies} data ranks: "
            f"move data {copies} into fsdp (now {sharded})."
        )
    return (
        f"{_label(name)} take {size / GIB:.2f} GiB: a larger fsdp axis (now {sharded}) cuts "
        "them, or bf16 optimizer state halves its part."
    )


def _of_cache(size: int, layout: Layout, workload: Workload) -> str:
    tensor, heads = layout.mesh.size(Axis.TENSOR), workload.model.kv_heads
    if workload.model.mla is None and tensor > heads and layout.attention_data == 1:
        return (
            f"The KV cache takes {size / GIB:.2f} GiB and each of its {heads} heads is held by "
            f"{tensor / heads:g} of {tensor} tensor ranks: attention_data {tensor // heads} or a "
            "context axis cuts it."
        )
    return (
        f"The KV cache takes {size / GIB:.2f} GiB: fewer sequences (batch_limit), an 8-bit cache, "
        "or a context axis cuts it."
    )


def _of_logits(size: int, layout: Layout) -> str:
    more = " and gradient_accumulation makes up for it" if layout.microbatch > 1 else ""
    return (
        f"Logits take {size / GIB:.2f} GiB: a tensor axis cuts the vocab, a context axis the "
        f"sequence, a smaller microbatch (now {layout.microbatch}) the batch{more}."
    )


def _of_activations(name: str, size: int, layout: Layout) -> str:
    take = f"{_label(name)} take {size / GIB:.2f} GiB"
    if layout.remat is not Remat.FULL:
        return f"{take}: remat {layout.remat} keeps them; remat full keeps each layer's input only."
    tensor = layout.mesh.size(Axis.TENSOR)
    if tensor > 1 and not layout.sequence_parallel:
        return (
            f"{take}, whole on each of {tensor} tensor ranks: sequence_parallel cuts them by "
            f"{tensor}."
        )
    if layout.microbatch > 1:
        return (
            f"{take}: a smaller microbatch (now {layout.microbatch}) with more "
            "gradient_accumulation cuts them."
        )
    if tensor > 1:
        return f"{take}: move tensor {tensor} into fsdp, which cuts the batch instead."
    return f"{take}: a context axis cuts the sequence."
