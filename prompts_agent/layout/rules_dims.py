"""Rules about tensor dims: what each axis cuts must come out even."""

from __future__ import annotations

import math

import numpy as np

from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.rule import (
    BoolColumn,
    IntColumn,
    Rule,
    Words,
    factors,
    multiple,
    truth,
)
from prompts_agent.layout.space import Space
from prompts_agent.layout.table import LayoutTable

__all__ = ["DIM_RULES"]


def _all(table: LayoutTable) -> BoolColumn:
    return np.ones(len(table), dtype=np.bool_)


def _head_shards(table: LayoutTable) -> IntColumn:
    """Over how many devices attention's heads are cut: the tensor ranks of one attention group."""
    shards: IntColumn = np.maximum(table.size(Axis.TENSOR) // table.attention_data, 1)
    return shards


def _head_shards_of(layout: Layout) -> int:
    return max(layout.mesh.size(Axis.TENSOR) // layout.attention_data, 1)


def _head_axis(layout: Layout) -> str:
    return "tensor" if layout.attention_data == 1 else "tensor ÷ attention_data"


def _heads(table: LayoutTable, space: Space) -> BoolColumn:
    return truth(space.model.heads % _head_shards(table) == 0)


def _heads_words(layout: Layout, space: Space) -> Words:
    heads = space.model.heads
    return multiple(f"{heads} heads", heads, {_head_axis(layout): _head_shards_of(layout)})


def _kv_heads(table: LayoutTable, space: Space) -> BoolColumn:
    """Each device has whole KV heads, or each KV head is held whole by several devices."""
    if space.model.mla is not None:
        return _all(table)
    shards, kv = _head_shards(table), space.model.kv_heads
    return truth((kv % shards == 0) | (shards % kv == 0))


def _kv_heads_words(layout: Layout, space: Space) -> Words:
    shards, kv = _head_shards_of(layout), space.model.kv_heads
    axis = _head_axis(layout)
    if space.model.mla is not None:
        return Words("multi-head latent attention caches one latent, no KV heads", "", quiet=True)
    if kv % shards == 0:
        return multiple(f"{kv} KV heads", kv, {axis: shards})
    whole = shards % kv == 0
    return Words(
        f"{axis} {shards} ÷ {kv} KV heads = {shards // kv} ranks for each"
        if whole
        else f"{kv} KV heads and {axis} {shards}: neither is a multiple of the other",
        f"Choose a tensor that divides {kv}, or a multiple of {kv}, which repeats KV heads.",
        # The flag about repeated heads says it, and what to do about it.
        quiet=whole,
    )


def _kv_once(table: LayoutTable, space: Space) -> BoolColumn:
    held = 1 if space.model.mla is not None else space.model.kv_heads
    return truth(_head_shards(table) <= held)


def _kv_once_words(layout: Layout, space: Space) -> Words:
    shards = _head_shards_of(layout)
    held = 1 if space.model.mla is not None else space.model.kv_heads
    what = "the MLA latent" if space.model.mla is not None else f"each of {held} KV heads"
    return Words(
        f"{what} is held by {-(-shards // held)} of {shards} tensor ranks",
        f"Use a tensor of at most {held}, or attention_data in serving, to hold each once.",
        quiet=True,
    )


def _mlp_cuts(table: LayoutTable, space: Space) -> tuple[tuple[str, int, IntColumn], ...]:
    """Name, width and shards of every inner dim of a feed-forward block that the model has.

    Where expert divides other axes it takes tensor ranks too, and leaves each expert whole (an
    expert tensor degree of 1, as in vLLM).
    """
    model, tensor = space.model, table.size(Axis.TENSOR)
    within: IntColumn = np.where(table.expert_divides, 1, tensor)
    cuts = [("mlp", model.mlp, tensor)] if model.moe_layers < model.layers else []
    if model.moe is not None:
        cuts.append(("expert mlp", model.moe.mlp, within))
        cuts.append(("shared mlp", model.moe.shared_mlp, tensor))
    return tuple(cuts)


def _mlp(table: LayoutTable, space: Space) -> BoolColumn:
    ok = _all(table)
    for _, width, shards in _mlp_cuts(table, space):
        ok &= width % shards == 0
    return ok


def _mlp_words(layout: Layout, space: Space) -> Words:
    cuts = [(n, w, int(s[0])) for n, w, s in _mlp_cuts(LayoutTable.of([layout]), space) if w]
    words = [multiple(f"{name} {width}", width, {"tensor": n}) for name, width, n in cuts]
    broken = [w for w, (_, width, n) in zip(words, cuts, strict=True) if width % n]
    told = [w for w in words if not w.quiet]
    return Words(
        "; ".join(w.text for w in told or words), (broken or words)[0].cure, quiet=not told
    )


def _vocab(table: LayoutTable, space: Space) -> BoolColumn:
    return truth(space.model.vocab % table.size(Axis.TENSOR) == 0)


def _vocab_words(layout: Layout, space: Space) -> Words:
    vocab, tensor = space.model.vocab, layout.mesh.size(Axis.TENSOR)
    padded = -(-vocab // tensor) * tensor
    words = multiple(f"vocab {vocab}", vocab, {"tensor": tensor})
    return words._replace(
        cure=f"Pad the vocabulary to {padded}, as most frameworks do by themselves."
    )


def _embed_shards(table: LayoutTable, space: Space) -> IntColumn:
    """Over how many devices training cuts the embed dim of weights; see `specs.weight_axes`."""
    if not space.training:
        return np.ones(len(table), dtype=np.int64)
    context = np.where(table.weights_over_context, table.size(Axis.CONTEXT), 1)
    expert = np.where(table.expert_divides, 1, table.size(Axis.EXPERT))
    return table.size(Axis.FSDP) * context * expert


def _embed(table: LayoutTable, space: Space) -> BoolColumn:
    return truth(space.model.embed % _embed_shards(table, space) == 0)


def _embed_words(layout: Layout, space: Space) -> Words:
    axes = [Axis.FSDP] if layout.expert_divides else [Axis.FSDP, Axis.EXPERT]
    axes += [Axis.CONTEXT] if layout.weights_over_context else []
    sizes = {axis.value: layout.mesh.size(axis) if space.training else 1 for axis in axes}
    return multiple(f"embed {space.model.embed}", space.model.embed, sizes)


def _is_tpu(space: Space) -> bool:
    return find_chip(space.topology.chip).platform == "tpu"


def _embed_on_tpu(table: LayoutTable, space: Space) -> BoolColumn:
    """jax.jit refuses uneven shards."""
    return _embed(table, space) if _is_tpu(space) else _all(table)


def _embed_on_tpu_words(layout: Layout, space: Space) -> Words:
    words = _embed_words(layout, space)
    return words if _is_tpu(space) else words._replace(quiet=True)


def _embed_on_gpu(table: LayoutTable, space: Space) -> BoolColumn:
    """PyTorch's FSDP pads uneven shards."""
    return _all(table) if _is_tpu(space) else _embed(table, space)


def _embed_on_gpu_words(layout: Layout, space: Space) -> Words:
    words = _embed_words(layout, space)
    return words._replace(quiet=True) if _is_tpu(space) else words


def _experts(table: LayoutTable, space: Space) -> BoolColumn:
    expert = table.size(Axis.EXPERT)
    if space.model.moe is None:
        return truth(expert == 1)
    return truth(space.model.moe.experts % expert == 0)


def _experts_words(layout: Layout, space: Space) -> Words:
    expert = layout.mesh.size(Axis.EXPERT)
    if space.model.moe is None:
        return Words(
            f"expert {expert} and a dense model",
            "Set expert to 1: there are no experts to cut.",
            quiet=True,
        )
    experts = space.model.moe.experts
    return multiple(f"{experts} experts", experts, {"expert": expert})


def _cut_evenly(parts: IntColumn, space: Space) -> BoolColumn:
    """Layers are a multiple of the parts; with uneven stages the last may have fewer, not none, or
    the embedding and the loss count as a layer each (Llama 3's 126: arXiv 2407.21783, 3.3.2).

    61 layers in 16 parts: 4 each and 1 in the last. In 32 parts: 2 each leaves the last without.
    126 layers in 64 parts: 1 beside the embedding, 2 in each other, 1 beside the loss.
    """
    layers = space.model.layers
    if not space.uneven_stages:
        return truth(layers % parts == 0)
    fewer_in_last = (parts - 1) * -(-layers // parts) < layers
    return truth(fewer_in_last | ((layers + 2) % parts == 0))


def _cut_words(what: str, by: dict[str, int], space: Space) -> Words:
    layers, parts = space.model.layers, math.prod(by.values())
    words = multiple(f"{layers} {what}", layers, by)
    if not space.uneven_stages or layers % parts == 0 or (layers + 2) % parts == 0:
        return words
    most = -(-layers // parts)
    rest = layers - (parts - 1) * most
    return words._replace(
        text=f"{layers} {what} ÷ {factors(by)}: {most} in each part, {max(rest, 0)} in the last",
        cure="Use fewer parts, so that the last has layers too, or a number that divides "
        f"{layers + 2}: the embedding and the loss then count as a layer each.",
    )


def _layers(table: LayoutTable, space: Space) -> BoolColumn:
    stages = table.size(Axis.PIPELINE)
    return _cut_evenly(stages, space)


def _layers_words(layout: Layout, space: Space) -> Words:
    words = _cut_words("layers", {"pipeline": layout.mesh.size(Axis.PIPELINE)}, space)
    # With chunks, the rule about virtual stages has the finer cut.
    return words._replace(quiet=words.quiet or layout.virtual_stages > 1)


def _chunks(table: LayoutTable, space: Space) -> BoolColumn:
    return _cut_evenly(table.size(Axis.PIPELINE) * table.virtual_stages, space)


def _chunks_words(layout: Layout, space: Space) -> Words:
    stages = layout.mesh.size(Axis.PIPELINE)
    by = {"pipeline": stages, "virtual_stages": layout.virtual_stages}
    words = _cut_words("layers", by, space)
    return words._replace(quiet=layout.virtual_stages == 1)


DIM_RULES: tuple[Rule, ...] = (
    Rule(name="heads", mask=_heads, words=_heads_words, early="training"),
    Rule(name="kv_heads", mask=_kv_heads, words=_kv_heads_words, early="training"),
    Rule(name="kv_repeated", mask=_kv_once, words=_kv_once_words, forbids=False),
    Rule(name="mlp", mask=_mlp, words=_mlp_words, early="always"),
    Rule(name="vocab", mask=_vocab, words=_vocab_words, forbids=False),
    Rule(name="embed", mask=_embed_on_tpu, words=_embed_on_tpu_words, early="always"),
    Rule(name="embed_uneven", mask=_embed_on_gpu, words=_embed_on_gpu_words, forbids=False),
    Rule(name="experts", mask=_experts, words=_experts_words, early="always"),
    Rule(name="layers", mask=_layers, words=_layers_words, early="always"),
    Rule(name="virtual_stages", mask=_chunks, words=_chunks_words),
)
