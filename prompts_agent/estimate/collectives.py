"""Seconds that collectives take, and the bytes behind them.

All formulas are the ring's or better: an all-gather or reduce-scatter of B bytes (the whole tensor)
over n ranks moves `(n-1)/n × B` through each device, an all-reduce twice that (Thakur et al., 2005;
Patarasuk and Yuan, 2009), an all-to-all `(n-1)/n` of what a rank holds. The latency is alpha a hop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.links import Links
from prompts_agent.estimate.setting import Setting
from prompts_agent.estimate.sizes import dtype_bytes
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis

__all__ = [
    "all_gather_s",
    "context_s",
    "data_s",
    "distinct",
    "expert_s",
    "fsdp_s",
    "ring_latency_s",
    "send_s",
    "tensor_s",
]

FloatColumn = NDArray[np.float64]

# All-reduces of the residual stream in a block: two forward, two backward; remat full repeats the
# attention's (the mlp's output is not needed again). XLA's module for llama2-7B on v5e 4x4 under
# remat full has 5: 22 GB a device for fsdp 4 × tensor 4, 87 GB for tensor 16.
_REDUCES = {Remat.NONE: 4.0, Remat.MINIMAL: 4.0, Remat.FULL: 5.0, Remat.OFFLOAD: 5.0}
_KEY_PASSES = {Remat.NONE: 2.0, Remat.MINIMAL: 2.0, Remat.FULL: 3.0, Remat.OFFLOAD: 3.0}
_EXCHANGES = {Remat.NONE: 4.0, Remat.MINIMAL: 4.0, Remat.FULL: 6.0, Remat.OFFLOAD: 6.0}
# Gathers of a layer's weights: forward and backward (ZeRO-3, arXiv 1910.02054, section 7.2.2).
_GATHERS = 2.0


def all_gather_s(links: Links, axes: tuple[Axis, ...], whole_bytes: FloatColumn) -> FloatColumn:
    """All-gather (or reduce-scatter) over the product of `axes` of a tensor of `whole_bytes`.

    Inside the domain the axes lie on different links, so their bandwidths add; across domains every
    device sends its part over the network first, 1/inside of the tensor, so both phases count.
    """
    inside = np.ones_like(whole_bytes)
    across, rate = inside.copy(), 0.0 * inside
    network = np.full_like(inside, np.inf)
    for axis in axes:
        bandwidth, _, ranks, domains, axis_network = links.of(axis)
        inside, across = inside * ranks, across * domains
        used = ranks > 1.0
        rate = rate + np.where(used, bandwidth, 0.0)
        network = np.where(domains > 1.0, np.minimum(network, axis_network), network)
    fast = whole_bytes * (inside - 1.0) / inside / np.where(rate > 0.0, rate, 1.0)
    slow = (whole_bytes / inside) * (across - 1.0) / across / network
    return fast + slow + ring_latency_s(links, axes)


def ring_latency_s(links: Links, axes: tuple[Axis, ...]) -> FloatColumn:
    """Latency of one ring over the product of `axes`: alpha a hop inside a domain, and across."""
    hops = np.zeros(len(links.hops))
    across = np.ones_like(hops)
    for axis in axes:
        _, axis_hops, ranks, domains, _ = links.of(axis)
        across = across * domains
        hops = hops + np.where(ranks > 1.0, axis_hops, 0.0)
    return links.hop_latency_s * hops + links.network_latency_s * (across - 1.0)


def send_s(links: Links, axis: Axis, sent_bytes: FloatColumn) -> FloatColumn:
    """Point-to-point transfer to the next rank of `axis`: over the network where it has domains."""
    bandwidth, _, ranks, domains, network = links.of(axis)
    far = domains > 1.0
    rate = np.where(far, network, bandwidth)
    latency = np.where(far, links.network_latency_s, links.hop_latency_s)
    return np.where(ranks * domains > 1.0, sent_bytes / rate + 2.0 * latency, 0.0)


def fsdp_s(at: Setting) -> FloatColumn:
    """Weights gathered forward and backward, gradients reduce-scattered, every microbatch; where
    weights are kept for the step, a gather and a reduce-scatter a step, of which each microbatch
    bears its part.

    Over fsdp, context where it shards weights, and expert for the dense part where that is a factor
    of the mesh. B is a stage's weights ÷ tensor, `P × bytes`, three times.
    """
    arch, z = at.arch, at.sizes
    dense = z.layers * arch.dense_layer_parameters + arch.embedding_parameters / z.pipeline
    experts = z.layers * arch.expert_layer_parameters / (z.expert * z.expert_tensor)
    per = (_GATHERS + 1.0) * at.element_bytes
    links = at.links.only_where(Axis.CONTEXT, at.table.weights_over_context)
    wide = links.only_where(Axis.EXPERT, ~at.table.expert_divides)
    axes = (Axis.FSDP, Axis.CONTEXT)
    seconds = all_gather_s(wide, (*axes, Axis.EXPERT), per * dense / z.tensor)
    if arch.experts:
        seconds = seconds + all_gather_s(links, axes, per * experts)
    latency = (_GATHERS + 1.0) * z.layers * ring_latency_s(links, axes)
    once = 2.0 / (_GATHERS + 1.0) / z.microbatches
    share = np.where(at.weights_kept, once, 1.0)
    return np.where(z.gathered_shards > 1.0, (seconds + latency) * share, 0.0)


def data_s(at: Setting, gradient_bytes: FloatColumn) -> FloatColumn:
    """Once a step: gradients are reduced over the copies of the weights (data, and context where it
    holds whole ones). `gradient_bytes` is what a device holds. Without ZeRO-1 it is an all-reduce;
    with it gradients are reduce-scattered and new weights gathered, in the compute dtype.
    """
    whole = ~at.table.weights_over_context
    links = at.links.only_where(Axis.CONTEXT, whole)
    axes = (Axis.DATA, Axis.CONTEXT)
    size = dtype_bytes(at.workload.precision.gradients)
    weights = gradient_bytes * at.element_bytes / size
    back = np.where(at.table.zero_stage >= 1, weights, gradient_bytes)
    seconds = all_gather_s(links, axes, gradient_bytes) + all_gather_s(links, axes, back)
    # Every further piece pays the latency of both rings again.
    pieces = np.maximum(np.ceil(gradient_bytes / at.constants.bucket_bytes) - 1.0, 0.0)
    seconds = seconds + 2.0 * pieces * ring_latency_s(links, axes)
    copies = at.sizes.data * np.where(whole, at.sizes.context, 1.0)
    return np.where(copies > 1.0, seconds, 0.0)


def tensor_s(at: Setting) -> FloatColumn:
    """Residual activations reduced in every block, every microbatch: an all-reduce of `T × embed`
    is an all-gather and a reduce-scatter, which is what sequence_parallel runs (arXiv 2205.05198,
    section 4.2.2: the same volume). The embedding lookup and the output table add one each.
    """
    z = at.sizes
    times = at.by_remat(_REDUCES) * z.layers + 2.0 / z.pipeline
    whole = z.tokens * at.arch.embed * at.element_bytes
    return np.where(
        z.tensor > 1.0, times * 2.0 * all_gather_s(at.links, (Axis.TENSOR,), whole), 0.0
    )


def context_s(at: Setting) -> FloatColumn:
    """Keys and values of the other context ranks, gathered or passed round a ring (arXiv
    2310.01889): forward once, again where remat full repeats it, and their gradients back.
    """
    z = at.sizes
    ranks = z.kv_tensor if at.arch.kv_has_heads else np.ones_like(z.tensor)
    kept = at.arch.kv_elements_per_layer / ranks
    whole = z.tokens * z.context * kept * at.element_bytes
    one = all_gather_s(at.links, (Axis.CONTEXT,), whole)
    return np.where(z.context > 1.0, at.by_remat(_KEY_PASSES) * z.layers * one, 0.0)


def expert_s(at: Setting) -> FloatColumn:
    """Tokens sent to their experts and back in every expert layer: two all-to-alls forward, two
    backward, two more under remat full; a token crosses to each domain, and to each rank in it,
    once. A torus forwards through neighbours: a ring of n carries
    n/4 times as much on its busiest link as a switch, both ways used.
    """
    arch, z = at.arch, at.sizes
    if arch.experts == 0:
        return np.zeros_like(z.tokens)
    row = z.tokens * arch.embed * at.element_bytes * arch.expert_layer_share
    row = row / np.where(at.table.expert_divides, z.tensor, 1.0)
    bandwidth, hops, ranks, domains, network = at.links.of(Axis.EXPERT)
    detour = np.ones_like(ranks) if at.links.switched else np.maximum(ranks / 4.0, 1.0)
    copies = float(arch.experts_per_token)
    inside = row * detour * distinct(ranks, copies) * (ranks - 1.0) / ranks
    across = row * distinct(domains, copies) * (domains - 1.0) / domains
    seconds = np.where(ranks > 1.0, inside / bandwidth, 0.0)
    seconds = seconds + np.where(domains > 1.0, across / network, 0.0)
    latency = at.links.hop_latency_s * hops + at.links.network_latency_s * (domains - 1.0)
    one = seconds + latency
    return np.where(z.expert > 1.0, at.by_remat(_EXCHANGES) * z.layers * one, 0.0)


def distinct(groups: FloatColumn, copies: float) -> FloatColumn:
    """Groups that hold one of a token's experts at least, chosen evenly: `g × (1 - (1 - 1/g)^k)`.

    A token is sent to each group once, whatever number of its experts is there (DeepSeek's
    dispatch, arXiv 2412.19437, section 3.2.2). 8 experts over 8 groups: 5.25.
    """
    return np.asarray(groups * (1.0 - (1.0 - 1.0 / groups) ** copies))
