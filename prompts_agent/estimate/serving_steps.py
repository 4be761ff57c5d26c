"""The two steps of a server: a decode step, and the prefill of one prompt.

Every function returns float64[n] seconds. b is the sequences that decode together on one replica, g
the groups of attention_data, t the tensor degree, e the expert degree, p the pipeline degree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.collectives import all_gather_s, send_s
from prompts_agent.estimate.compute import local_efficiency
from prompts_agent.estimate.memory_serving import cached_tokens
from prompts_agent.estimate.setting import Setting
from prompts_agent.estimate.sizes import dtype_bytes
from prompts_agent.layout.mesh import Axis

__all__ = ["decode_step", "prefill_step", "touched_experts"]

FloatColumn = NDArray[np.float64]


def touched_experts(
    experts: int, experts_per_token: int, tokens: FloatColumn, spread: float = 1.0
) -> FloatColumn:
    """Experts whose weights a step of `tokens` tokens reads: `E (1 - (1 - k/E)^tokens)`, where E is
    `spread` of them all (routing that prefers some experts never meets the others).

    8 experts, 2 a token, 1 token: 2; many tokens: 8, or 4 with a spread of a half.
    """
    if experts == 0:
        return np.zeros_like(tokens)
    met = max(experts * spread, float(experts_per_token))
    return np.asarray(met * (1.0 - (1.0 - experts_per_token / met) ** tokens))


def decode_step(
    at: Setting, sequences: FloatColumn, kv_cache_bytes: FloatColumn
) -> dict[str, FloatColumn]:
    """One token for every sequence. Weights and cache are read once from HBM (Pope et al., arXiv
    2211.05102, section 2); the matmuls' FLOP count where they take longer than the weights' read.
    """
    z, constants = at.sizes, at.constants
    micro = np.ceil(sequences / z.pipeline)
    # Every group of attention_data has a scheduler of its own.
    own = np.ceil(sequences / at.groups)
    weights = _weights_read_s(at, micro)
    flops = 2.0 * micro * (at.arch.active_parameters / z.pipeline) / z.tensor
    matmul = flops / (at.serving_peak_flops_per_s * constants.serving_matmul_efficiency)
    launches = z.layers * _layer_latency_s(at) + constants.serving_overhead_s
    hbm = at.chip.hbm_bandwidth_bytes_per_s * constants.serving_hbm_efficiency
    return {
        "weights_s": z.pipeline * weights,
        "kv_s": kv_cache_bytes / hbm,
        "attention_s": np.maximum(_scores_s(at, own) - kv_cache_bytes / hbm, 0.0),
        "compute_s": z.pipeline * np.maximum(matmul - weights, 0.0),
        "routing_s": z.pipeline * _routing_s(at, micro),
        "exposed_s": z.pipeline * _waits_s(at, micro),
        "overhead_s": z.pipeline * launches + constants.sequence_overhead_s * own,
    }


def prefill_step(
    at: Setting, prompt: float, together: FloatColumn | float = np.inf
) -> dict[str, FloatColumn]:
    """One prompt of `prompt` tokens through one replica: matmuls and causal attention at their
    efficiencies, never faster than the weights are read, and the collectives in every layer.

    Groups of attention_data each attend to another prompt. Where fewer than g come `together`, some
    groups wait for the others at every layer, and a prompt's attention takes as much longer.
    """
    arch, z, constants = at.arch, at.sizes, at.constants
    tokens = prompt / z.context
    scores = 4.0 * tokens * arch.attended_tokens(int(prompt)) * arch.head_dim * arch.layers
    heads = np.ceil(arch.heads / z.tensor)
    overhead = arch.layers * _layer_latency_s(at) + constants.serving_overhead_s
    read = z.pipeline * _weights_read_s(at, tokens)
    idle = at.groups / np.minimum(at.groups, together)
    return {
        "compute_s": np.maximum(_prompt_matmuls_s(at, tokens, idle), read),
        "attention_s": idle
        * scores
        * heads
        / (at.wide_flops_per_s * constants.attention_efficiency),
        "routing_s": z.pipeline * _routing_s(at, tokens),
        "exposed_s": z.pipeline * _waits_s(at, tokens),
        "overhead_s": np.full_like(tokens, overhead),
    }


def _weights_read_s(at: Setting, tokens: FloatColumn) -> FloatColumn:
    """Reading what one stage has of the weights, of experts those that `tokens` tokens meet."""
    arch, z, constants = at.arch, at.sizes, at.constants
    groups = at.groups
    expert = arch.expert_layer_parameters * _busiest_share(at, tokens) / z.expert_tensor
    expert = expert / constants.serving_expert_efficiency
    dense = arch.attention_layer_parameters * groups + arch.dense_mlp_layer_parameters
    held = z.layers * (dense / z.tensor + expert)
    held = held + arch.vocab * arch.embed / (z.tensor * z.pipeline)
    hbm = at.chip.hbm_bandwidth_bytes_per_s * constants.serving_hbm_efficiency
    return dtype_bytes(at.workload.precision.weights) * held / hbm


def _busiest_share(at: Setting, tokens: FloatColumn) -> FloatColumn:
    """Share of a layer's experts whose weights the busiest expert rank reads for `tokens` tokens.

    Which experts a step meets is drawn anew for each, so ranks meet unequal numbers until each
    meets all of its own: experts cut over ranks are even at any batch, whole ones at large batches.
    """
    arch, z = at.arch, at.sizes
    spread = at.constants.expert_spread
    met = touched_experts(arch.experts, arch.experts_per_token, tokens * _shards(at), spread)
    pool = max(arch.experts * spread, float(arch.experts_per_token), 1.0)
    mean = met / z.expert
    most = _busiest(mean, z.expert, 1.0 - met / pool)
    return np.minimum(most, pool / z.expert) / max(arch.experts, 1)


def _busiest(mean: FloatColumn, ranks: FloatColumn, left: FloatColumn | float = 1.0) -> FloatColumn:
    """Load of the fullest of `ranks` bins with `mean` balls each: `m + sqrt(2 m ln n)` (Raab and
    Steger, 1998, theorem 1), the deviation scaled by the variance that is `left`.
    """
    return np.asarray(mean + np.sqrt(2.0 * mean * left * np.log(ranks)))


def _cut_efficiency(at: Setting) -> FloatColumn:
    """What an expert's matmuls keep when its width is cut over ranks, `w ÷ (w + half extent)`: 256
    columns of an expert cut in eight keep 80%.
    """
    if not at.arch.experts:
        return np.ones_like(at.sizes.tensor)
    width = at.arch.expert_width / at.sizes.expert_tensor
    return np.asarray(width / (width + at.constants.matmul_half_extent))


def _prompt_matmuls_s(at: Setting, tokens: FloatColumn, idle: FloatColumn) -> FloatColumn:
    """`2 T P_active ÷ t ÷ (peak × efficiency)`, experts at `serving_grouped_efficiency` of it and
    attention's projections `idle` times as long.
    """
    arch, z, constants = at.arch, at.sizes, at.constants
    width = np.maximum(arch.active_mlp_width / z.tensor, 1.0)
    share = local_efficiency(width, tokens, constants)
    share = share * constants.serving_matmul_efficiency / constants.matmul_efficiency
    if dtype_bytes(at.serving_dtype) < 2.0:
        share = share * constants.low_precision_efficiency
    experts = arch.layers * arch.active_expert_layer_parameters
    copies = tokens * _shards(at) * arch.experts_per_token / z.expert
    uneven = np.where(z.expert > 1.0, _busiest(copies, z.expert) / np.maximum(copies, 1.0), 1.0)
    grouped = constants.serving_grouped_efficiency * _cut_efficiency(at)
    attention = arch.layers * arch.attention_layer_parameters
    weighed = arch.active_parameters - experts + experts * uneven / grouped
    weighed = weighed + (idle - 1.0) * attention
    return 2.0 * tokens * weighed / (z.tensor * at.serving_peak_flops_per_s * share)


def _routing_s(at: Setting, tokens: FloatColumn) -> FloatColumn:
    """Tokens sorted by expert and back, one stage: each copy's row passes HBM
    `expert_row_touches` times. Ranks that hold the same tokens do it all, whatever t is.
    """
    arch, z = at.arch, at.sizes
    rows = tokens * arch.experts_per_token * arch.expert_layer_share / at.groups
    moved = z.layers * rows * arch.embed * at.element_bytes * at.constants.expert_row_touches
    hbm = at.chip.hbm_bandwidth_bytes_per_s * at.constants.serving_hbm_efficiency
    return moved / hbm


def _waits_s(at: Setting, tokens: FloatColumn) -> FloatColumn:
    """Collectives of one stage for `tokens` tokens of one replica; nothing hides them.

    Tensor ranks that hold the same tokens reduce twice a layer, after attention and after the mlp
    or the experts, however those are cut: experts whole on ranks or cut over them give the same
    partial sums. Groups of attention_data reduce inside a group, and gather and scatter tokens
    around the mlp, or send each to its experts and back, whichever is less. Expert ranks that are a
    factor of the mesh hold tokens of their own and send them. Context merges partial softmaxes.
    """
    arch, z, links = at.arch, at.sizes, at.links
    groups = at.groups
    whole = tokens * arch.embed * at.element_bytes
    mlp = _reduce_s(at, whole)
    attention = np.where(groups > 1.0, _reduce_s(at, whole / groups), mlp)
    layer = np.where(z.tensor > groups, attention, 0.0)
    if arch.experts:
        rows = arch.experts_per_token * z.expert_tensor / groups
        sent = 2.0 * all_gather_s(links, (Axis.TENSOR,), whole * rows)
        sent = sent * arch.expert_layer_share + mlp * (1.0 - arch.expert_layer_share)
        mlp = np.where((groups > 1.0) & (z.expert > 1.0), np.minimum(mlp, sent), mlp)
        moved = whole * arch.experts_per_token * arch.expert_layer_share
        exchange = 2.0 * all_gather_s(links, (Axis.EXPERT,), moved)
        apart = (z.expert > 1.0) & ~at.table.expert_divides
        layer = layer + np.where(apart, exchange, 0.0)
        late = at.constants.exchange_latency_s * arch.expert_layer_share
        mlp = mlp + np.where(groups > 1.0, late, 0.0)
    layer = layer + np.where(z.tensor > 1.0, mlp, 0.0)
    merged = tokens * arch.heads * arch.head_dim * 4.0 / z.tensor
    merge = 2.0 * all_gather_s(links, (Axis.CONTEXT,), merged)
    layer = layer + np.where(z.context > 1.0, merge, 0.0)
    return z.layers * layer + send_s(links, Axis.PIPELINE, whole)


def _reduce_s(at: Setting, whole_bytes: FloatColumn) -> FloatColumn:
    """An all-reduce over tensor; `reduce_latency_s` comes per doubling of its ranks."""
    latency = at.constants.reduce_latency_s * np.log2(at.sizes.tensor)
    return 2.0 * all_gather_s(at.links, (Axis.TENSOR,), whole_bytes) + latency


def _layer_latency_s(at: Setting) -> float:
    latent = 0.0 if at.arch.kv_has_heads else at.constants.latent_latency_s
    return at.constants.layer_latency_s + latent


def _scores_s(at: Setting, sequences: FloatColumn) -> FloatColumn:
    """Products with the cache for `sequences` of one group: `2 × S × heads ÷ (t ÷ g) × width`. A
    latent is read once for all heads, which makes its attention a matter of FLOP.
    """
    arch, z = at.arch, at.sizes
    cached = arch.cached_tokens(int(cached_tokens(at))) / z.context
    heads = np.ceil(arch.heads * at.groups / z.tensor)
    flops = 2.0 * sequences * cached * heads * arch.cached_width * arch.layers
    return flops / (at.wide_flops_per_s * at.constants.attention_efficiency)


def _shards(at: Setting) -> FloatColumn:
    """Over how many ranks of expert, as a factor of the mesh, the tokens of a step lie."""
    return np.where(at.table.expert_divides, 1.0, at.sizes.expert)
