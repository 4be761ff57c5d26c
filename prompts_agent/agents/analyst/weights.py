"""How parameters are cut: replicated weights, an uncut vocab dim, KV heads cut too finely."""

from __future__ import annotations

import math
import re

from prompts_agent.agents.analyst.cite import finding, sentence
from prompts_agent.agents.finding import Finding
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.spec import ModelSpec
from prompts_agent.trace.measure.facts import slug
from prompts_agent.trace.profile import Profile, ProgramParameter
from prompts_agent.workload.axis_names import axis_named
from prompts_agent.workload.workload import Workload

__all__ = [
    "REPLICATED_BYTES",
    "detect",
    "kv_split",
    "local_bytes",
    "replicated_bytes",
    "tensor_degree",
]

REPLICATED_BYTES = 2**30
"""Held by a device in shards that other devices hold as well. Norms, biases and position tables
of the largest models stay well below; a single replicated embedding is above."""

_BYTES = {"f64": 8, "s64": 8, "f32": 4, "s32": 4, "u32": 4, "bf16": 2, "f16": 2}
_KEY_NAMES = re.compile(r"\b(?:k_proj|wk|key)\b|_k_proj|key_proj", re.IGNORECASE)
_OUTPUT_NAMES = re.compile(r"lm_head|logits|unembed|output_(?:proj|embed)", re.IGNORECASE)


def local_bytes(parameter: ProgramParameter) -> int:
    """Bytes of the parameter on one device; dtypes of eight bits and fewer count one byte each."""
    return math.prod(parameter.local_shape) * _BYTES.get(parameter.dtype, 1)


def replicated_bytes(profile: Profile) -> int:
    """Bytes of one device that at least one other device holds as well."""
    return sum(local_bytes(p) for p in profile.parameters if (p.replication or 1) > 1)


def tensor_degree(profile: Profile, workload: Workload | None) -> int | None:
    """Size of today's tensor axis: from the baseline, else from the trace's mesh, else None."""
    if workload is not None and workload.baseline is not None:
        return workload.baseline.mesh.size(Axis.TENSOR)
    sizes = [axis.size for axis in profile.mesh if axis_named(axis.name) is Axis.TENSOR]
    return math.prod(sizes) if sizes else None


def kv_split(profile: Profile, workload: Workload | None) -> tuple[int, int] | None:
    """(tensor, kv heads) where KV heads are cut in more shards than there are heads.

    The shards are those of the key projection where the program shows it, else the tensor axis.
    """
    # Latent attention has one latent a token, which every rank holds whatever the axis is.
    if workload is None or workload.model.mla is not None:
        return None
    tensor = _key_shards(profile, workload.model) or tensor_degree(profile, workload)
    if tensor is None:
        return None
    kv_heads = workload.model.kv_heads
    return (tensor, kv_heads) if tensor > kv_heads else None


def _key_shards(profile: Profile, model: ModelSpec) -> int | None:
    """In how many shards the output dim of the key projection is cut."""
    wide = model.kv_heads * model.head_dim
    for parameter in profile.parameters:
        shape, tiles = parameter.global_shape, parameter.tiles
        if not shape or not tiles or len(shape) > len(tiles) or wide == model.embed:
            continue
        if _KEY_NAMES.search(parameter.name) and wide in shape:
            return tiles[shape.index(wide)]
    return None


def detect(profile: Profile, workload: Workload | None) -> list[Finding]:
    """Structural findings: they hold for traces without times too, and so carry no seconds."""
    found = (
        _replicated(profile),
        _logits(profile, workload),
        _kv_heads(profile, workload),
    )
    return [item for item in found if item is not None]


def _replicated(profile: Profile) -> Finding | None:
    if replicated_bytes(profile) <= REPLICATED_BYTES:
        return None
    return finding(
        profile,
        FindingKind.REPLICATED_WEIGHTS,
        title=sentence(
            profile,
            "Every device holds {fact:derived.replicated_bytes} that other devices hold as well",
            "Every device holds weights that other devices hold as well",
        ),
        detail="Cutting them over the fsdp axis (or the optimizer's state over data) frees that "
        "memory, for an all-gather of the weights in each layer.",
        is_sharding=True,
        fact_ids=("derived.replicated_bytes", "hbm.peak"),
    )


def _logits(profile: Profile, workload: Workload | None) -> Finding | None:
    """The output projection's vocab dim is whole although there is a tensor axis to cut it.

    On a mesh without tensor axis the logits are cut along the batch, which is as good.
    """
    if (tensor_degree(profile, workload) or 1) == 1:
        return None
    vocab = workload.model.vocab if workload is not None else None
    for parameter in profile.parameters:
        if _OUTPUT_NAMES.search(parameter.name) and _vocab_is_whole(parameter, vocab):
            return finding(
                profile,
                FindingKind.LOGITS_NOT_SHARDED,
                title="The output projection's vocab dim is not cut by the tensor axis",
                detail="Every tensor rank computes the whole logits, in the step's largest matmul "
                "and its largest activation. It is a rule to add (vocab → tensor), not a mesh.",
                is_sharding=False,
                fact_ids=tuple(f"mesh.{slug(used.name)}" for used in profile.mesh),
                axis=Axis.TENSOR.value,
            )
    return None


def _vocab_is_whole(parameter: ProgramParameter, vocab: int | None) -> bool:
    shape, tiles = parameter.global_shape, parameter.tiles
    if not shape or not tiles or len(shape) > len(tiles):
        return False
    dim = shape.index(vocab) if vocab in shape else shape.index(max(shape))
    return tiles[dim] == 1


def _kv_heads(profile: Profile, workload: Workload | None) -> Finding | None:
    if kv_split(profile, workload) is None:
        return None
    return finding(
        profile,
        FindingKind.KV_HEADS_SPLIT,
        title=sentence(
            profile,
            "The tensor axis, {fact:derived.tensor}, is larger than the {fact:derived.kv_heads} "
            "KV heads",
            "The tensor axis is larger than the number of KV heads",
        ),
        detail="Several ranks hold the same keys and values: the cache and its bandwidth do not "
        "shrink with more ranks. Use a tensor axis of at most the KV heads, and data-parallel "
        "attention or another axis for the rest.",
        is_sharding=True,
        fact_ids=("derived.tensor", "derived.kv_heads"),
        axis=Axis.TENSOR.value,
    )
