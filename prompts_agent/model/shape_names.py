"""What the name of a program argument says: which weight it is, of which layer, or optimizer state.

jax writes argument paths (`state.params['layers']['mlp']['wi_0']['kernel']`), PyTorch dotted names
(`model.layers.3.mlp.gate_proj.weight`), small programs plain ones (`emb`, `w1`).
"""

from __future__ import annotations

import re
from enum import StrEnum

__all__ = [
    "Role",
    "is_optimizer_state",
    "layer_index",
    "pattern",
    "role_of",
    "tokens_of",
    "without_prefix",
]


class Role(StrEnum):
    """What a weight does. IN and OUT are feed-forward; GATE_UP is two IN side by side."""

    EMBEDDING = "embedding"
    HEAD = "head"
    POSITIONS = "positions"
    QKV = "qkv"
    Q = "q"
    K = "k"
    V = "v"
    KV = "kv"
    O = "o"  # noqa: E741  (the output projection's usual name)
    IN = "in"
    GATE_UP = "gate_up"
    OUT = "out"
    ROUTER = "router"


_NAMES: dict[Role, str] = {
    Role.EMBEDDING: "emb embed embedding embedder embeddings wte tok_emb tok_embed tok_embeddings "
    "token_embedder token_embedding embed_tokens input_embedding embed_in word_embeddings shared "
    "wemb vocab_embed",
    Role.HEAD: "lm_head logits_dense unembed unembedding embed_out output output_layer head "
    "output_head w_out_vocab lm_out",
    Role.POSITIONS: "wpe pos pos_emb pos_embed pos_embedding position_embedding embed_positions "
    "position_embeddings",
    Role.QKV: "qkv wqkv w_qkv qkv_proj c_attn query_key_value in_proj attn_qkv linear_qkv "
    "qkv_einsum",
    Role.Q: "q wq w_q q_proj query q_einsum",
    Role.K: "k wk w_k k_proj key",
    Role.V: "v wv w_v v_proj value",
    Role.KV: "kv wkv w_kv kv_proj kv_einsum key_value",
    Role.O: "o w_o o_proj attn_out attn_vec_einsum linear_proj out out_proj",
    Role.IN: "wi wi_0 wi_1 w1 w3 w_1 w_3 w_in win up up_proj w_up wup gate_proj w_gate wgate fc1 "
    "c_fc dense_h_to_4h fc_in",
    Role.GATE_UP: "gate_up gate_up_proj w13 gating_einsum wi_fused",
    Role.OUT: "w2 w_2 down down_proj w_down wdown w_out wout fc2 dense_4h_to_h fc_out linear_fc2",
    Role.ROUTER: "router gating router_weights",
}
_ROLES: dict[str, Role] = {word: role for role, words in _NAMES.items() for word in words.split()}
# Says how a weight is stored, not what it is.
_STORAGE = {"kernel", "weight", "weights", "w", "param", "params", "layer", "linear"}
# The output of attention or of the feed-forward block: the path has to say which.
_AMBIGUOUS = {"wo", "c_proj", "dense"}
# Of the words of storage, those that hold several weights.
_CONTAINERS = {"weights", "params", "layer"}
_OPTIMIZER = {
    "mu", "nu", "exp_avg", "exp_avg_sq", "opt", "opt_state", "opt_states", "optimizer", "optim",
    "optimizer_state", "momentum", "moments", "adam", "adamw", "ema", "ema_params", "grad", "grads",
    "gradients", "grad_acc", "master", "master_params", "trace",
}  # fmt: skip
_PREFIX = {"args", "arg", "state", "train_state", "carry", "params", "param", "model", "variables"}
_LAYER = re.compile(
    r"(?:decoder_|transformer_|encoder_)?(?:layers?|blocks?|resblocks?|h)_?(\d+)|(\d+)"
)
_ATTENTION = re.compile(r"att(?:n|ention)?$|^att|attention|attn")
_FEED_FORWARD = re.compile(r"mlp|ffn|ffw|feed_?forward|moe|expert")


def tokens_of(name: str) -> tuple[str, ...]:
    """`state.params['h_0']['attn']/kernel` → (state, params, h_0, attn, kernel), in lower case."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return tuple(token for token in re.split(r"[^a-z0-9_]+", snake.lower()) if token)


def is_optimizer_state(tokens: tuple[str, ...]) -> bool:
    """A moment, a master copy or a gradient: it repeats the shapes of the weights."""
    if any(token in _OPTIMIZER for token in tokens):
        return True
    # `m['emb']` and `state.v['emb']`; `layers.v` is a value matrix.
    path = without_prefix(tokens)
    return len(path) > 1 and path[0] in {"m", "v"}


def without_prefix(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """The path without its argument: `args[0]['emb']` and `state.params['emb']` → emb."""
    position = 0
    while position < len(tokens) - 1 and (
        tokens[position] in _PREFIX or tokens[position].isdigit()
    ):
        position += 1
    return tokens[position:]


def layer_index(tokens: tuple[str, ...]) -> int | None:
    """The first layer number on the path (`layers_12`, or `layers` `12`), or None."""
    for position, token in enumerate(tokens[:-1]):
        match = _LAYER.fullmatch(token)
        # A bare number counts behind a word: `args[0]` is no layer, `layers.0` is.
        if match is None:
            continue
        if match[1] is not None:
            return int(match[1])
        if position > 0 and re.fullmatch(r"(?:.*_)?(?:layers?|blocks?|h)", tokens[position - 1]):
            return int(match[2])
    return None


def pattern(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """The path with numbers of layers and experts taken out, equal for the same weight of each."""
    return tuple("#" if _LAYER.fullmatch(token) else token for token in tokens)


def _words(tokens: tuple[str, ...]) -> list[str]:
    """The words of a path that say what a weight is.

    A last `value` behind a weight's name or `kernel` is where flax's nnx keeps the array; behind
    anything else it is the value projection.
    """
    if len(tokens) > 1 and tokens[-1] == "value":
        before = tokens[-2]
        if before in _ROLES or before in _AMBIGUOUS or before in _STORAGE - _CONTAINERS:
            tokens = tokens[:-1]
    return [token for token in tokens if not token.isdigit() and token not in _STORAGE]


def role_of(tokens: tuple[str, ...]) -> Role | None:
    """What the name says the weight is; None where it says nothing, and then the shape has to."""
    words = _words(tokens)
    if not words:
        return None
    last = words[-1]
    context = words[:-1]
    feed_forward = any(_FEED_FORWARD.search(word) for word in context)
    attention = any(_ATTENTION.search(word) for word in context)
    if last in {"embedding", "embeddings"} and context:
        # `token_embedder.embedding` and `position_embedder.embedding` differ one word before.
        return Role.POSITIONS if context[-1].startswith(("pos", "wpe")) else Role.EMBEDDING
    if last in _AMBIGUOUS:
        return Role.OUT if feed_forward else Role.O if attention else None
    if last == "linear_fc1":
        return None
    if last == "gate":
        return Role.ROUTER if "moe" in " ".join(context) else Role.IN if feed_forward else None
    role = _ROLES.get(last)
    if role is Role.O and feed_forward:
        return Role.OUT
    if role is Role.HEAD and (feed_forward or attention):
        return Role.OUT if feed_forward else Role.O
    return role
