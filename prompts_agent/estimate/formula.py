"""Formulas: what every term of an estimate is worked out by, in words, and who says so.

The functions in this room compute; this table is what a person reads. A test holds that each term
that an estimate returns stands here with a source, and that every name of a constant is one.
"""

from __future__ import annotations

from typing import NamedTuple

from prompts_agent.workload.workload import Phase

__all__ = ["TABLES", "Formula", "formula_of", "is_total"]


class Formula(NamedTuple):
    """`text` is in the symbols of `symbols.SYMBOLS`; `constants` are the calibrated numbers that
    enter, by their names in `Constants`.
    """

    text: str
    source: str
    constants: tuple[str, ...] = ()


_MATMUL = ("matmul_efficiency", "chip_share", "matmul_half_extent")
_LINKS = ("link_efficiency", "network_efficiency", "hop_latency_s", "network_latency_s")
_OWN = "counted: reads and writes of the kernels"

_TIME: dict[str, Formula] = {
    "matmul_s": Formula(
        "m × passes × L × 2 T P_layer ÷ t ÷ (peak × efficiency), never less than reading the "
        "weights; passes 3, or 4 under remat full and offload (3.5 for offload's attention); "
        "efficiency = matmul_efficiency × chip_share × n ÷ (n + half) × rows ÷ (rows + half) for n "
        "local columns; experts × (1 + expert_imbalance × (1 - 1/e)) ÷ grouped_efficiency",
        "arXiv 2001.08361, section 2.1; passes: arXiv 2205.05198, appendix A",
        (*_MATMUL, "low_precision_efficiency", "grouped_efficiency", "expert_imbalance"),
    ),
    "attention_s": Formula(
        "m × L × 3.5 passes (4.5 where recomputed) × 4 T × S/2 × heads × head_dim ÷ t × "
        "(1 + context_split × log2 c) ÷ (peak at 16 bits × attention_efficiency); a window in "
        "place of S where it is shorter",
        "arXiv 2307.08691, section 4.1",
        ("attention_efficiency", "context_split"),
    ),
    "elementwise_s": Formula(
        "m × L × T × (10 residuals + the mlp's product + q and k + 4 rows for each of a token's "
        "experts) × bytes × passes (3; minimal 3.5; full and offload 4) ÷ (HBM × hbm_efficiency); "
        "residuals are cut over t under sequence_parallel alone",
        f"{_OWN}; sequence parallelism: arXiv 2205.05198, section 4.2.2",
        ("hbm_efficiency",),
    ),
    "logits_s": Formula(
        "m × (6 T × embed × vocab ÷ t ÷ (peak at 16 bits × efficiency) + 5 passes over T × vocab ÷ "
        "t logits ÷ (HBM × hbm_efficiency)); with stages, on GPUs what the last stage has beyond "
        "its layers, on TPUs 1/p",
        f"arXiv 2001.08361, section 2.1; {_OWN}",
        (*_MATMUL, "hbm_efficiency"),
    ),
    "fsdp_exposed_s": Formula(
        "m × (weights of a stage ÷ t gathered forward and backward, gradients scattered: 3 × bytes "
        "× (n - 1)/n ÷ link, and a ring's latency in every layer) less min(fsdp_overlap × that, "
        "compute); once a step where weights are kept whole under a pipeline",
        "arXiv 1910.02054, section 7.2.2; arXiv 2407.21783, section 3.3.2",
        ("fsdp_overlap", *_LINKS),
    ),
    "tensor_exposed_s": Formula(
        "m × (4 L (5 under full and offload) + 2) all-reduces of T × embed × bytes, each 2 × "
        "(t - 1)/t ÷ link, less min(overlap × that, compute)",
        "arXiv 2205.05198, section 4.2.2; counts: XLA's module for llama2-7B on v5e 4x4",
        ("tensor_overlap", "tensor_overlap_sharded", *_LINKS),
    ),
    "context_exposed_s": Formula(
        "m × 2 L (3 under full and offload) × keys and values of all context ranks ÷ link, less "
        "min(context_overlap × that, compute)",
        "arXiv 2310.01889",
        ("context_overlap", *_LINKS),
    ),
    "expert_exposed_s": Formula(
        "m × 4 L (6 under full and offload) all-to-alls of T × embed × bytes × g (1 - (1 - 1/g)^k) "
        "× (g - 1)/g ÷ link for g groups and k experts a token, less min(overlap × that, compute)",
        "arXiv 2412.19437, section 3.2",
        ("expert_overlap", "expert_overlap_staged", *_LINKS),
    ),
    "pipeline_exposed_s": Formula(
        "m × 2 T × embed × bytes × v ÷ link to the next stage (on GPUs cut over t), less "
        "min(pipeline_overlap × that, compute)",
        "arXiv 2104.04473, section 4.1",
        ("pipeline_overlap", *_LINKS),
    ),
    "host_exposed_s": Formula(
        "m × 2 × T × L × offloaded input, q, k and v ÷ (host link × host_efficiency), less what "
        "compute hides; remat offload alone",
        "counted: XLA put 15.0 GiB of llama3-8b on the host for 24,576 tokens",
        ("host_efficiency",),
    ),
    "launch_s": Formula(
        "m × what L × layer_floor_s is more than compute and waits",
        "nanotron's shortest microbatches (nanotron_ultrascale)",
        ("layer_floor_s",),
    ),
    "stall_s": Formula(
        "m × microbatch_stall_s × (devices ÷ 512)³",
        "nanotron's published runs (nanotron_ultrascale); other software shows none",
        ("microbatch_stall_s",),
    ),
    "bubble_s": Formula(
        "(p - 1) ÷ (m v) of all that repeats with each microbatch",
        "arXiv 2104.04473, section 2.2",
    ),
    "data_exposed_s": Formula(
        "gradients reduced over copies of the weights and, under ZeRO-1, new weights gathered: 2 × "
        "bytes × (n - 1)/n ÷ link in pieces of bucket_bytes, less min(overlap × that, the backward "
        "passes after it)",
        "arXiv 1910.02054, section 5; arXiv 2104.04473, section 2.2",
        ("data_overlap", "data_overlap_sharded", "bucket_bytes", *_LINKS),
    ),
    "optimizer_s": Formula(
        "(2 × (weights + optimizer state) + gradients) ÷ (HBM × hbm_efficiency)",
        _OWN,
        ("hbm_efficiency",),
    ),
    "overhead_s": Formula(
        "step_overhead_s, once a step", "the constant's own source", ("step_overhead_s",)
    ),
    "straggler_s": Formula(
        "straggle × log2(devices) × all the rest", "the constant's own source", ("straggle",)
    ),
}

_WORKSPACE = Formula(
    "workspace_bytes + fragmentation × all the rest",
    "the constants' own sources",
    ("workspace_bytes", "fragmentation"),
)

_MEMORY: dict[str, Formula] = {
    "weights_bytes": Formula(
        "master weights: P ÷ (p t × shards) × bytes, over copies too under ZeRO-1, experts ÷ e; "
        "and the copy in the compute dtype where it is held beside them",
        "arXiv 1910.02054, sections 3.1 and 5.1",
    ),
    "gradients_bytes": Formula(
        "P ÷ (p t × shards) × bytes; whole over fsdp where weights are kept for the step",
        "arXiv 1910.02054, section 3.1",
    ),
    "optimizer_bytes": Formula(
        "P ÷ (p t × shards) × slots × bytes (AdamW in fp32: 8), over copies too under ZeRO-1",
        "arXiv 1910.02054, sections 3.1 and 5.1",
    ),
    "gathered_weights_bytes": Formula(
        "1.5 layers' weights ÷ t in the compute dtype, or the output table at the loss",
        "fitted to the compiled needs of estimate/data/measured.yaml",
    ),
    "activations_bytes": Formula(
        "T × L × microbatches in flight × what remat keeps of a token and layer; in flight: 1F1B "
        "min(p, m), interleaved × (1 + (p - 1)/(p v)), a compiler's loop m + p - 1",
        "arXiv 2205.05198, sections 4 and 4.2.1",
    ),
    "layer_work_bytes": Formula(
        "T × (recomputed activations of a layer + 0.75 × (2 residuals + the mlp's inputs) × bytes "
        "+ gathered keys and values); 0 where the need peaks at the loss",
        "fitted to the compiled needs of estimate/data/measured.yaml",
    ),
    "logits_bytes": Formula(
        "T × vocab ÷ t × logits_bytes; 0 where the need peaks in a layer's backward pass",
        "the constant's own source",
        ("logits_bytes",),
    ),
    "workspace_bytes": _WORKSPACE,
}

_SERVING_MEMORY: dict[str, Formula] = {
    "weights_bytes": Formula(
        "P ÷ (t p) × bytes, experts over e; attention's once a group of attention_data",
        "counted: the model's parameters",
    ),
    "kv_cache_bytes": Formula(
        "b sequences × elements of their tokens × bytes ÷ (p c × min(t ÷ g, kv heads)), a group's "
        "own; a latent (MLA) is whole on every rank of a group. Mixed serving: input + output ÷ 2 "
        "tokens on average, and b is at most what 0.9 of the HBM has room for",
        "counted: the model's keys and values; arXiv 2309.06180",
    ),
    "activations_bytes": Formula(
        "tokens of a step ÷ c × what one layer holds of a token without remat",
        "arXiv 2205.05198, section 4",
    ),
    "logits_bytes": Formula("b × vocab ÷ t × 4 bytes", "counted: fp32 logits"),
    "workspace_bytes": _WORKSPACE,
}

_WAITS = Formula(
    "p × L × (2 all-reduces of the step's tokens × embed × bytes over t, each with "
    "reduce_latency_s × log2 t; groups of attention_data reduce inside a group, and gather and "
    "scatter tokens, or send each to its experts, whichever is less, and exchange_latency_s; 2 "
    "all-to-alls over an e that is a factor of the mesh; the merge over c) + sends between stages",
    "arXiv 2211.05102, section 3; nothing hides them in a decode step",
    ("reduce_latency_s", "exchange_latency_s", *_LINKS),
)
_ROUTING = Formula(
    "p × L × tokens × k ÷ g × embed × bytes × expert_row_touches ÷ (HBM × serving_hbm_efficiency)",
    "counted: each copy of a token's row is sorted to its expert and back",
    ("expert_row_touches", "serving_hbm_efficiency"),
)
_TTFT = Formula("the time of one prompt's prefill", "the sum of its parts")

_DECODE: dict[str, Formula] = {
    "weights_s": Formula(
        "p × bytes of the layers' weights ÷ t and the output table ÷ (HBM × "
        "serving_hbm_efficiency), experts ÷ serving_expert_efficiency; of s = expert_spread × E "
        "experts s (1 - (1 - k/s)^tokens) are met, m = that ÷ e on a rank, "
        "m + sqrt(2 m (1 - met/s) ln e) on the busiest",
        "arXiv 2211.05102, section 2; Raab and Steger, 1998, theorem 1",
        (
            "serving_hbm_efficiency",
            "serving_expert_efficiency",
            "expert_spread",
        ),
    ),
    "kv_s": Formula(
        "the cache of all sequences ÷ (HBM × serving_hbm_efficiency)",
        "arXiv 2211.05102, section 2",
        ("serving_hbm_efficiency",),
    ),
    "attention_s": Formula(
        "what L × 2 b ÷ g × cached tokens × heads ÷ (t ÷ g) × (key + value width) ÷ (peak at 16 "
        "bits × attention_efficiency) is more than reading the cache; of a latent (MLA) the widths "
        "are the latent's",
        "arXiv 2405.04434, section 2.1: absorbed projections",
        ("attention_efficiency",),
    ),
    "compute_s": Formula(
        "what p × 2 b P_active ÷ (p t) ÷ (peak × serving_matmul_efficiency) is more than reading "
        "the weights",
        "arXiv 2211.05102, section 2",
        ("serving_matmul_efficiency",),
    ),
    "routing_s": _ROUTING,
    "exposed_s": _WAITS,
    "overhead_s": Formula(
        "p × (L × (layer_latency_s + latent_latency_s where the cache is a latent) + "
        "serving_overhead_s) + b ÷ g × sequence_overhead_s",
        "the constants' own sources",
        ("layer_latency_s", "latent_latency_s", "serving_overhead_s", "sequence_overhead_s"),
    ),
    "tpot_s": Formula("one decode step", "the sum of its parts"),
    "ttft_s": _TTFT,
}

_QUEUE = ("prompt_queue", "prompt_queue_exponent")
_SERVE: dict[str, Formula] = _DECODE | {
    "prefill_s": Formula(
        "(b - 1 - prompts ahead) × prefill of a prompt ÷ (output tokens × min(p, 1 + ahead)): the "
        "prompts that come between a sequence's tokens; ahead = prompt_queue × "
        "b^prompt_queue_exponent",
        "counted: continuous batching, a prompt in for every sequence out",
        _QUEUE,
    ),
    "tpot_s": Formula("one decode step and its share of prefill", "the sum of its parts"),
    "ttft_s": Formula(
        "prefill of the prompt and of those ahead, half of the decode step that runs when it "
        "comes, and (in flight ÷ b - 1) × the time that one request is served",
        "counted: arrivals at any moment of a step; requests beyond b wait. At a rate of λ a "
        "replica: prompts ahead = ρ ÷ (2 (1 - ρ)), ρ = λ × prefill (Pollaczek and Khinchine); the "
        "wait for a place by Sakasegawa (1977); after an hour where λ is more than can be served",
        _QUEUE,
    ),
}

_PREFILL: dict[str, Formula] = {
    "compute_s": Formula(
        "2 T P_active ÷ t ÷ (peak × efficiency), experts ÷ (serving_grouped_efficiency × w ÷ (w + "
        "matmul_half_extent)), never less than reading the weights; efficiency as in training, "
        "with serving_matmul_efficiency",
        "arXiv 2001.08361, section 2.1; arXiv 2211.05102, section 2",
        (
            "serving_matmul_efficiency",
            "serving_grouped_efficiency",
            "serving_hbm_efficiency",
            "matmul_half_extent",
        ),
    ),
    "attention_s": Formula(
        "L × 4 T × S/2 × heads × head_dim ÷ t ÷ (peak at 16 bits × attention_efficiency)",
        "arXiv 2307.08691, section 4.1",
        ("attention_efficiency",),
    ),
    "routing_s": _ROUTING,
    "exposed_s": _WAITS,
    "overhead_s": Formula(
        "L × (layer_latency_s + latent_latency_s where the cache is a latent) + serving_overhead_s",
        "the constants' own sources",
        ("layer_latency_s", "latent_latency_s", "serving_overhead_s"),
    ),
    "ttft_s": _TTFT,
    "tpot_s": Formula("a decode step after it", "arXiv 2211.05102, section 2"),
}

_TRAINING = {f"time.{name}": one for name, one in _TIME.items()}
_TRAINING |= {f"memory.{name}": one for name, one in _MEMORY.items()}
_HELD = {f"memory.{name}": one for name, one in _SERVING_MEMORY.items()}

TABLES: dict[Phase, dict[str, Formula]] = {
    Phase.PRETRAIN: _TRAINING,
    Phase.POSTTRAIN: _TRAINING,
    Phase.PREFILL: {f"serving.{name}": one for name, one in _PREFILL.items()} | _HELD,
    Phase.DECODE: {f"serving.{name}": one for name, one in _DECODE.items()} | _HELD,
    Phase.SERVE: {f"serving.{name}": one for name, one in _SERVE.items()} | _HELD,
}
"""Of each phase, every term of `Estimates.terms` by its name."""

_TOTALS = frozenset({"serving.ttft_s", "serving.tpot_s"})


def formula_of(term: str, phase: Phase) -> Formula | None:
    """None for a term that this version does not have (a report of another version)."""
    return TABLES[phase].get(term)


def is_total(term: str) -> bool:
    """A sum of terms, not a term."""
    return term in _TOTALS
