"""FLOPs and cache bytes of a ModelSpec.

A weight in a matrix product costs 2 FLOPs a token (a multiply and an add). Attention costs, per
token and layer, 2·heads·qk_dim·context for the scores and 2·heads·v_dim·context for the weighted
sum. With every key in sight that is PaLM's 12·L·H·Q·T for training (arXiv:2204.02311, appendix B)
and the attention term of Megatron-LM's count (arXiv:2104.04473, appendix); a causal token sees (T +
1) / 2 keys on average, a windowed one less. The backward pass costs twice the forward pass.
"""

from __future__ import annotations

from prompts_agent.errors import ModelError
from prompts_agent.model.count import attention_matrices, feed_forward_matrices, mlp_matrices
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record

__all__ = [
    "Flops",
    "decode_flops_per_token",
    "encoder_flops_per_token",
    "forward_flops_per_token",
    "kv_bytes",
    "kv_bytes_per_token",
    "train_flops_per_token",
]


class Flops(Record):
    """FLOPs of one token: weights but the output's, output logits, attention scores and sums."""

    matmul: float
    logits: float
    attention: float

    @property
    def total(self) -> float:
        """All three together."""
        return self.matmul + self.logits + self.attention


def forward_flops_per_token(
    spec: ModelSpec, sequence: int, *, causal: bool = True, encoder_sequence: int = 0
) -> Flops:
    """Mean FLOPs of one decoder token in a forward pass over `sequence` tokens.

    Remat and capacity factors are not in it. `causal=False` counts every key, as PaLM and the older
    MaxText and Megatron formulas do, and ignores windows. For an encoder-decoder the
    cross-attention over `encoder_sequence` tokens is included and the encoder is not.
    Raises `ModelError` for a sequence below 1.
    """
    _positive(sequence)
    window = spec.sliding_window
    if causal:
        whole = (sequence + 1) / 2
        local = _mean_window(sequence, window, chunked=spec.chunked) if window else whole
    else:
        whole = local = float(sequence)
    return _decoder_flops(spec, whole, local, encoder_sequence)


def decode_flops_per_token(spec: ModelSpec, context: int, *, encoder_sequence: int = 0) -> Flops:
    """FLOPs of generating one token with `context` tokens in sight (itself included).

    Latent attention is counted in its absorbed form (arXiv:2405.04434, section 2.1.2): each head
    meets the cached latents themselves, because rebuilding every key at each step would cost more.
    """
    _positive(context)
    window = spec.sliding_window or context
    local = (context - 1) % window + 1 if spec.chunked else min(context, window)
    flops = _decoder_flops(spec, float(context), float(local), encoder_sequence)
    if spec.mla is None:
        return flops
    met = 2 * spec.mla.kv_lora_rank + spec.mla.qk_rope_head_dim
    absorbed = 2.0 * spec.heads * met * context * spec.layers
    return flops.model_copy(update={"attention": absorbed})


def encoder_flops_per_token(spec: ModelSpec, sequence: int) -> Flops:
    """FLOPs of one encoder token: its stack, and its keys and values for every cross-attention."""
    _positive(sequence)
    layer = attention_matrices(spec) + mlp_matrices(spec, spec.mlp)
    cross = 2 * spec.embed * spec.kv_heads * spec.head_dim * spec.layers
    weights = layer * spec.encoder_layers + (cross if spec.encoder_layers else 0)
    attention = _attention_flops(spec, float(sequence)) * spec.encoder_layers
    return Flops(matmul=2.0 * weights, logits=0.0, attention=attention)


def train_flops_per_token(spec: ModelSpec, sequence: int, *, causal: bool = True) -> float:
    """Forward and backward: three times the forward pass, without recomputation.

    An encoder-decoder counts one encoder token with each decoder token, both stacks `sequence`
    long.
    """
    encoder = sequence if spec.encoder_layers else 0
    flops = forward_flops_per_token(spec, sequence, causal=causal, encoder_sequence=encoder).total
    if encoder:
        flops += encoder_flops_per_token(spec, encoder).total
    return 3.0 * flops


def kv_bytes_per_token(spec: ModelSpec, dtype_bytes: float) -> float:
    """Bytes that one more token adds to the cache of all decoder layers while no window is full.

    Multi-head latent attention keeps the latent and the rotary key, once for all heads.
    """
    return _kv_values(spec) * spec.layers * dtype_bytes


def kv_bytes(
    spec: ModelSpec, context: int, dtype_bytes: float, *, encoder_sequence: int = 0
) -> float:
    """Cache of one sequence of `context` tokens; windowed layers keep a window, as the best servers
    do.

    Cross-attention adds the keys and values of `encoder_sequence` tokens in every decoder layer.
    """
    window = spec.sliding_window or context
    local_layers = spec.layers - spec.global_layers
    slots = spec.global_layers * context + local_layers * min(context, window)
    if spec.encoder_layers:
        slots += spec.layers * encoder_sequence
    return _kv_values(spec) * slots * dtype_bytes


def _kv_values(spec: ModelSpec) -> int:
    if spec.mla is not None:
        return spec.mla.kv_lora_rank + spec.mla.qk_rope_head_dim
    return 2 * spec.kv_heads * spec.head_dim


def _decoder_flops(spec: ModelSpec, whole: float, local: float, encoder_sequence: int) -> Flops:
    weights = attention_matrices(spec) * spec.layers + feed_forward_matrices(spec)
    local_layers = spec.layers - spec.global_layers
    attention = _attention_flops(spec, whole) * spec.global_layers
    attention += _attention_flops(spec, local) * local_layers
    if spec.encoder_layers:
        # The keys and values of the cross-attention are worked out once, for the encoder's tokens.
        weights += 2 * spec.embed * spec.heads * spec.head_dim * spec.layers
        attention += _attention_flops(spec, float(encoder_sequence)) * spec.layers
    logits = 2.0 * spec.embed * spec.vocab
    return Flops(matmul=2.0 * weights, logits=logits, attention=attention)


def _attention_flops(spec: ModelSpec, context: float) -> float:
    return 2.0 * spec.heads * (spec.qk_head_dim + spec.v_head_dim) * context


def _mean_window(sequence: int, window: int, *, chunked: bool) -> float:
    """Keys that a causal token sees on average; token i (from 1) sees min(i, window) of them."""
    if sequence <= window:
        return (sequence + 1) / 2
    if chunked:
        chunks, rest = divmod(sequence, window)
        seen = chunks * window * (window + 1) / 2 + rest * (rest + 1) / 2
    else:
        seen = window * (window + 1) / 2 + (sequence - window) * window
    return seen / sequence


def _positive(sequence: int) -> None:
    if sequence < 1:
        raise ModelError(
            f"a sequence of {sequence} tokens",
            rule="a sequence has at least one token",
            cure="Give a positive number.",
        )
