"""Partition specs: which mesh axes cut which dim of each weight and activation.

A spec is a tuple with an entry per dim, as `jax.sharding.PartitionSpec` takes them: None, the name
of a mesh axis, or a tuple of names (outermost first). The assignment is MaxText's default: the
embed dim of weights over the ZeRO-3 axes, heads, mlp and vocab over tensor (arXiv 1909.08053).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.spec import ModelSpec

__all__ = [
    "ACTIVATION_CLASSES",
    "ATTENTION_DATA",
    "WEIGHT_CLASSES",
    "Spec",
    "mesh_axes",
    "partition_specs",
    "shard_shape",
    "weight_axes",
]

Entry = str | tuple[str, ...] | None
Spec = tuple[Entry, ...]

ATTENTION_DATA = "attention_data"
"""Serving: the outer part of the tensor axis, an axis of its own in the emitted mesh."""

# Class → dims. Where layers are stacked (scanned), a layers dim goes in front, over pipeline.
WEIGHT_CLASSES: dict[str, tuple[str, ...]] = {
    "embedding": ("vocab", "embed"),
    "attention.q": ("embed", "heads", "head_dim"),
    "attention.k": ("embed", "kv_heads", "head_dim"),
    "attention.v": ("embed", "kv_heads", "head_dim"),
    "attention.o": ("heads", "head_dim", "embed"),
    "mlp.in": ("embed", "mlp"),
    "mlp.out": ("mlp", "embed"),
    "router": ("embed", "router"),
    "experts.in": ("experts", "expert_embed", "mlp"),
    "experts.out": ("experts", "mlp", "expert_embed"),
    "norm": ("norm",),
    "logits": ("embed", "vocab"),
}
ACTIVATION_CLASSES: dict[str, tuple[str, ...]] = {
    "tokens": ("batch", "sequence"),
    "activations": ("batch", "residual_sequence", "activation_embed"),
    "activations.heads": ("attention_batch", "sequence", "activation_heads", "head_dim"),
    "activations.mlp": ("batch", "sequence", "mlp"),
    "activations.logits": ("batch", "sequence", "vocab"),
    "kv_cache": ("attention_batch", "sequence", "kv_heads", "head_dim"),
}


def mesh_axes(layout: Layout) -> dict[str, int]:
    """Names and sizes of the emitted mesh's axes, outermost first; axes of size 1 are left out."""
    sizes: dict[str, int] = {}
    for axis, size in layout.mesh.used().items():
        groups = layout.attention_data if axis is Axis.TENSOR else 1
        sizes |= {ATTENTION_DATA: groups, axis.value: size // groups}
    return {name: size for name, size in sizes.items() if size > 1}


def weight_axes(layout: Layout, *, training: bool = True) -> tuple[str, ...]:
    """Axes that cut the embed dim of dense weights: fsdp, expert, and context if it shards weights.

    In training the expert ranks see different tokens, so for dense weights they are more fsdp.
    Serving gathers no weights: its dense weights are whole on every expert rank.
    """
    wanted = [Axis.FSDP]
    if training and not layout.expert_divides:
        wanted.append(Axis.EXPERT)
    if layout.weights_over_context:
        wanted.append(Axis.CONTEXT)
    return tuple(axis.value for axis in wanted if layout.mesh.size(axis) > 1)


def partition_specs(layout: Layout, model: ModelSpec, *, training: bool = True) -> dict[str, Spec]:
    """Spec of every class of WEIGHT_CLASSES (experts for MoE models alone) and ACTIVATION_CLASSES.

    A dim that its axes do not cut evenly stays whole where frameworks allow that (vocab, KV heads);
    elsewhere legality has refused the layout. Raises `LayoutError` for an expert axis that divides
    other axes, which no jax mesh can express.
    """
    if layout.expert_divides and layout.mesh.size(Axis.EXPERT) > 1:
        raise LayoutError(
            f"expert {layout.mesh.size(Axis.EXPERT)} divides data × fsdp × context × tensor",
            rule="a partition spec names axes of the mesh, and this expert axis is not one",
            cure="Set expert_divides to false, or emit for Megatron.",
        )
    rules = _dim_rules(layout, model, training=training)
    classes = WEIGHT_CLASSES | ACTIVATION_CLASSES
    if model.moe is None:
        classes = {n: d for n, d in classes.items() if n != "router" and "experts" not in d}
    return {name: tuple(rules.get(dim) for dim in dims) for name, dims in classes.items()}


def _dim_rules(layout: Layout, model: ModelSpec, *, training: bool) -> dict[str, Entry]:
    """Dim → axes. A dim that is not named here is never cut."""
    sizes = mesh_axes(layout)
    inner = _present(sizes, "tensor")
    # attention_data ranks hold other requests in attention and join tensor everywhere else.
    tensor = _present(sizes, ATTENTION_DATA, "tensor")
    embed = weight_axes(layout, training=training)
    batch = _present(sizes, "data", "fsdp", "expert")
    sequence = _present(sizes, "context")
    residual = sequence + (tensor if layout.sequence_parallel else ())
    return {
        "vocab": _if_even(model.vocab, tensor, sizes),
        "embed": _entry(embed),
        "expert_embed": _entry(tuple(axis for axis in embed if axis != "expert")),
        "heads": _entry(inner),
        "kv_heads": _if_even(model.kv_heads, inner, sizes),
        "mlp": _entry(tensor),
        "experts": _entry(_present(sizes, "expert")),
        "batch": _entry(batch),
        "attention_batch": _entry(batch + _present(sizes, ATTENTION_DATA)),
        "sequence": _entry(sequence),
        "residual_sequence": _entry(residual),
        "activation_heads": _entry(inner),
    }


def _present(sizes: Mapping[str, int], *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name in sizes)


def _entry(axes: tuple[str, ...]) -> Entry:
    """PartitionSpec's habit: nothing is None, one axis goes without its tuple."""
    if not axes:
        return None
    return axes[0] if len(axes) == 1 else axes


def _if_even(size: int, axes: tuple[str, ...], sizes: Mapping[str, int]) -> Entry:
    ways = math.prod(sizes[axis] for axis in axes)
    return _entry(axes) if size % ways == 0 else None


def shard_shape(
    global_shape: tuple[int, ...], spec: Spec, sizes: Mapping[str, int]
) -> tuple[int, ...]:
    """Shape of one device's shard; `sizes` is axis → size, an axis that is missing has size 1.

    >>> shard_shape((4096, 32, 128), ("fsdp", "tensor", None), {"fsdp": 16, "tensor": 4})
    (256, 8, 128)

    Raises `LayoutError` where a spec has more entries than dims, names an axis twice, or cuts a
    dim unevenly.
    """
    entries = [() if e is None else (e,) if isinstance(e, str) else e for e in spec]
    names = [name for entry in entries for name in entry]
    if len(spec) > len(global_shape) or len(set(names)) < len(names):
        raise LayoutError(
            f"spec {spec} for shape {global_shape}",
            rule="a spec has at most one entry a dim and names each axis once",
            cure="Give one entry a dim, and each axis to one dim.",
        )
    shape = list(global_shape)
    for dim, entry in enumerate(entries):
        ways = math.prod(sizes.get(name, 1) for name in entry)
        if shape[dim] % ways:
            raise LayoutError(
                f"dim {dim} of shape {global_shape} over {' × '.join(entry)} = {ways}",
                rule=f"shards are equal, and {shape[dim]} % {ways} = {shape[dim] % ways}",
                cure="Choose axis sizes that divide the dim.",
            )
        shape[dim] //= ways
    return tuple(shape)
