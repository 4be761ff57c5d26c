"""Weight shapes of a traced program → the architecture they belong to, with what had to be assumed.

Shapes give most dims exactly. They do not give the number of heads where queries come as one
matrix, nor how many experts a token is sent to; such gaps are filled by convention and named.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from prompts_agent.errors import ModelError
from prompts_agent.model.count import parameters as count_parameters
from prompts_agent.model.shape_blocks import Attention, FeedForward, read_attention, read_mlp
from prompts_agent.model.shape_layers import LayerShapes, Weight, split_layers
from prompts_agent.model.shape_names import Role, is_optimizer_state, tokens_of, without_prefix
from prompts_agent.model.spec import INFERRED, ModelSpec, MoeDims
from prompts_agent.record import Record

__all__ = ["InferredModel", "ParameterShape", "infer_model"]

# How far the parameters of the guess may be from those that were seen.
_TOLERANCE = 0.02
_FLOATS = ("bf16", "bfloat16", "f16", "float16", "f32", "float32", "f8", "float8", "f64", "float64")
_UNKNOWN = "Give the model by name or by its config.json."


class ParameterShape(Record):
    """One argument of a program: jax's path or "", dtype, whole (not per-device) shape."""

    name: str
    dtype: str
    global_shape: tuple[int, ...]


class InferredModel(Record):
    """`assumptions`: one sentence for each dim that the shapes do not show."""

    spec: ModelSpec
    assumptions: tuple[str, ...]


def infer_model(
    parameters: Sequence[ParameterShape], *, hint: ModelSpec | None = None
) -> InferredModel:
    """The decoder whose weights `parameters` are, optimizer state and inputs among them or not.

    `hint` is the architecture that the reader believes it is: where its dims agree with the shapes
    it fills the gaps, where they do not it is set aside and the assumptions say so.
    Raises `ModelError` where the shapes are no decoder-only transformer, or where the guess would
    not account for the parameters seen to within 2%.
    """
    assumptions: list[str] = []
    weights, vectors = _weights(parameters, assumptions)
    _refuse_what_shapes_cannot_tell(weights)
    split = split_layers(weights)
    if split is None:
        raise _no_model(weights, "no set of equal layers explains the shapes")
    embed = _embed(split)
    vectors = [*vectors, *split.vectors]
    attention = read_attention(split.inside, embed)
    mlp = read_mlp(split.inside, embed, attention)
    if attention is None or mlp is None:
        missing = "attention" if attention is None else "feed-forward"
        raise _no_model(weights, f"no {missing} weights are among the shapes of a layer")
    tables = _tables(split, embed)
    if tables is None:
        raise _no_model(weights, f"no token table of width {embed} is among the shapes")
    fields = {
        "layers": split.layers,
        "embed": embed,
        **tables,
        **_heads(attention, vectors, hint, assumptions),
        **_feed_forward(mlp, hint, assumptions),
        **_norms(vectors, embed, assumptions),
    }
    spec = ModelSpec(name=INFERRED, family=INFERRED, source="weight shapes", **fields)
    _check_total(spec, split)
    return _with_hint(spec, hint, assumptions)


def _weights(
    parameters: Sequence[ParameterShape], assumptions: list[str]
) -> tuple[list[Weight], list[Weight]]:
    """(matrices, vectors) of the model itself, as floats; optimizer state is taken out."""
    floats = [
        Weight(tokens_of(parameter.name), parameter.global_shape)
        for parameter in parameters
        if parameter.dtype.lower().startswith(_FLOATS)
        and parameter.global_shape
        and min(parameter.global_shape) > 0
    ]
    kept = [weight for weight in floats if not is_optimizer_state(weight.tokens)]
    matrices = [weight for weight in kept if len(weight.dims) >= 2]
    vectors = [weight for weight in kept if len(weight.dims) == 1]
    named = any(weight.role for weight in matrices)
    copies = _named_copies(matrices) if named else _copies(matrices)
    if copies > 1:
        assumptions.append(
            f"every weight is there {copies} times: one taken as the model, {copies - 1} as "
            "optimizer state"
        )
        matrices = _every(matrices, copies)
        vectors = _every(vectors, copies)
    return matrices, vectors


def _named_copies(matrices: Sequence[Weight]) -> int:
    """How often each path comes back under another argument: args[0]['emb'], args[1]['emb']."""
    counts = Counter((without_prefix(weight.tokens), weight.dims) for weight in matrices)
    numbers = set(counts.values())
    return numbers.pop() if len(numbers) == 1 else 1


def _copies(matrices: Sequence[Weight]) -> int:
    """Of nameless weights: 3 with Adam's two moments, 2 with one copy of stacked ones, else 1."""
    counts = Counter(weight.dims for weight in matrices)
    common = math.gcd(*counts.values()) if counts else 1
    if common % 3 == 0:
        return 3
    stacked = any(len(dims) >= 3 for dims in counts)
    return 2 if common % 2 == 0 and stacked else 1


def _every(weights: Sequence[Weight], copies: int) -> list[Weight]:
    counts = Counter((without_prefix(weight.tokens), weight.dims) for weight in weights)
    return [
        Weight(tokens, dims)
        for (tokens, dims), number in counts.items()
        for _ in range(max(1, number // copies))
    ]


def _refuse_what_shapes_cannot_tell(weights: Sequence[Weight]) -> None:
    words = {token for weight in weights for token in weight.tokens}
    if {"encoder", "decoder"} <= words:
        raise _no_model(weights, "an encoder-decoder cannot be told from shapes")
    if any(word.startswith(("kv_a", "q_a", "wkv_a", "wq_a")) or "lora" in word for word in words):
        raise _no_model(weights, "latent attention and adapters cannot be told from shapes")


def _no_model(weights: Sequence[Weight], rule: str) -> ModelError:
    return ModelError(f"{len(weights)} weight shapes", rule=rule, cure=_UNKNOWN)


def _embed(split: LayerShapes) -> int:
    """The dim that most matrices of a layer share, the token table as the judge of a tie."""
    votes: Counter[int] = Counter()
    for weight in split.inside:
        if len(weight.dims) >= 2:
            votes.update(dict.fromkeys(set(weight.dims), weight.count))
    in_tables = Counter(dim for weight in split.outside for dim in set(weight.dims))
    return max(votes, key=lambda dim: (votes[dim], in_tables[dim], dim))


def _tables(split: LayerShapes, embed: int) -> dict[str, Any] | None:
    """vocab, tied_embeddings, learned_positions; None without a token table."""
    wide = [w for w in split.outside if len(w.dims) == 2 and embed in w.dims]
    positions = [w for w in wide if w.role is Role.POSITIONS]
    rest = [w for w in wide if w.role is not Role.POSITIONS]
    tables = [w for w in rest if w.role is Role.EMBEDDING] or rest
    if not tables:
        return None
    table = max(tables, key=lambda weight: math.prod(weight.dims))
    vocab = _other(table.dims, embed)
    others = [w for w in rest if w is not table]
    heads = [w for w in others if w.role is Role.HEAD or _other(w.dims, embed) == vocab]
    positions += [w for w in others if w not in heads and w.role is None]
    return {
        "vocab": vocab,
        "tied_embeddings": not heads and table.count == 1,
        "learned_positions": _other(positions[0].dims, embed) if positions else 0,
    }


def _other(dims: tuple[int, ...], embed: int) -> int:
    return math.prod(dims) // embed


def _heads(
    attention: Attention,
    vectors: Sequence[Weight],
    hint: ModelSpec | None,
    assumptions: list[str],
) -> dict[str, Any]:
    head_dim = attention.head_dim
    norms = [
        vector.dims[0]
        for vector in vectors
        if any(word in {"q_norm", "k_norm", "query_norm", "key_norm"} for word in vector.tokens)
    ]
    if norms and head_dim is None:
        head_dim = norms[0]
    if head_dim is None:
        common = math.gcd(attention.q_dim, attention.kv_dim)
        known = hint.head_dim if hint is not None else None
        # 128 from a width of 1024 on, as nearly all models since GPT-3; 64 below, as GPT-2.
        usual = [128, 64, 96, 80, 256] if attention.q_dim >= 1024 else [64, 32, 128]
        fits = [dim for dim in ([known] if known else []) + usual if common % dim == 0]
        head_dim = fits[0] if fits else common
        why = f"as in {hint.name}" if hint is not None and head_dim == known else "by convention"
        assumptions.append(f"head_dim {head_dim} {why}: the projections do not show it")
    return {
        "heads": attention.q_dim // head_dim,
        "kv_heads": attention.kv_dim // head_dim,
        "head_dim": head_dim,
        "qk_norm": bool(norms),
    }


def _feed_forward(
    mlp: FeedForward, hint: ModelSpec | None, assumptions: list[str]
) -> dict[str, Any]:
    fields: dict[str, Any] = {"mlp": mlp.inner, "gated_mlp": mlp.gated}
    if mlp.experts is None:
        return fields
    known = hint.moe if hint is not None else None
    if known is not None and known.experts == mlp.experts:
        per_token, why = known.experts_per_token, f"as in {hint.name}" if hint else ""
    else:
        per_token, why = (8 if mlp.experts >= 64 else min(2, mlp.experts)), "by convention"
    assumptions.append(f"{per_token} experts a token {why}: shapes do not show it")
    shared = 1 if mlp.shared else 0
    fields["moe"] = MoeDims(
        experts=mlp.experts,
        experts_per_token=per_token,
        mlp=mlp.inner,
        shared_experts=shared,
        shared_mlp=mlp.shared or 0,
    )
    return fields


def _norms(vectors: Sequence[Weight], embed: int, assumptions: list[str]) -> dict[str, Any]:
    of_width = [vector for vector in vectors if vector.dims == (embed,)]
    biased = any("bias" in vector.tokens for vector in of_width)
    assumptions.append(
        "two norms a layer" + (" with bias" if biased else " without bias") + ": not counted"
    )
    return {"norm": "layernorm" if biased else "rms"}


def _check_total(spec: ModelSpec, split: LayerShapes) -> None:
    """The guess has to account for the matrices that were seen."""
    seen = sum(weight.size for weight in split.inside) * split.layers
    seen += sum(weight.size for weight in split.outside)
    counted = count_parameters(spec)
    guessed = counted.total - counted.norms
    if abs(guessed - seen) > _TOLERANCE * seen:
        raise ModelError(
            f"{seen:,} parameters in the shapes",
            rule=f"the likeliest decoder ({spec.layers} layers, embed {spec.embed}, "
            f"mlp {spec.mlp}) would have {guessed:,}",
            cure=_UNKNOWN,
        )


def _feed_forward_differs(spec: ModelSpec, hint: ModelSpec) -> list[str]:
    """With experts everywhere the dense inner dim is not among the shapes."""
    seen = (spec.moe.experts, spec.moe.mlp) if spec.moe else (0, spec.mlp)
    known = (hint.moe.experts, hint.moe.mlp) if hint.moe else (0, hint.mlp)
    return [] if seen == known else [f"experts and mlp {seen} for {known}"]


def _with_hint(spec: ModelSpec, hint: ModelSpec | None, assumptions: list[str]) -> InferredModel:
    if hint is None:
        return InferredModel(spec=spec, assumptions=tuple(assumptions))
    differing = [
        f"{field} {getattr(spec, field)} for {getattr(hint, field)}"
        for field in ("layers", "embed", "heads", "kv_heads", "head_dim", "gated_mlp")
        if getattr(spec, field) != getattr(hint, field)
    ]
    differing += _feed_forward_differs(spec, hint)
    # Frameworks pad the vocabulary to a multiple of the mesh.
    if not hint.vocab <= spec.vocab <= 1.05 * hint.vocab:
        differing.append(f"vocab {spec.vocab} for {hint.vocab}")
    if differing:
        assumptions.append(f"not {hint.name}: {', '.join(differing)}")
        return InferredModel(spec=spec, assumptions=tuple(assumptions))
    update = {"vocab": spec.vocab, "tied_embeddings": spec.tied_embeddings}
    return InferredModel(
        spec=hint.model_copy(update=update),
        assumptions=(*assumptions, f"norms, windows and biases as in {hint.name}"),
    )
