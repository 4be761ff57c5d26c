"""The fixed words that recipes, findings and queries share."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Architecture", "FindingKind", "Move", "RecipeKind"]


class FindingKind(StrEnum):
    """What a job can be waiting for."""

    EXPOSED_COLLECTIVE = "exposed_collective"
    """Communication that no compute hides."""
    HOST_TRANSFER = "host_transfer"
    """Copies between HBM and the host's memory that no compute hides."""
    INPUT_BOUND = "input_bound"
    """The device waits for the next batch."""
    RECOMPILING = "recompiling"
    """Several programs where one was meant."""
    COMPUTE_BOUND = "compute_bound"
    """The matrix units are near their peak."""
    MEMORY_BANDWIDTH_BOUND = "memory_bandwidth_bound"
    """HBM delivers close to its peak and the matrix units do not."""
    SMALL_MATMULS = "small_matmuls"
    """Matmuls too small, or tiled too badly, for the matrix units."""
    KV_HEADS_SPLIT = "kv_heads_split"
    """The tensor axis is larger than the number of KV heads."""
    REPLICATED_WEIGHTS = "replicated_weights"
    """Weights lie whole on devices that could share them."""
    LOGITS_NOT_SHARDED = "logits_not_sharded"
    """The vocab dim of the logits is whole on every device."""
    STRAGGLER = "straggler"
    """A few devices are late and all others wait for them."""
    IDLE_BETWEEN_STEPS = "idle_between_steps"
    """The device waits for the host to launch the next step."""
    HBM_NEARLY_FULL = "hbm_nearly_full"
    """Little HBM is left."""
    TRACE_TOO_POOR = "trace_too_poor"
    """The trace cannot tell."""
    PIPELINE_BUBBLE = "pipeline_bubble"
    """Pipeline stages wait for microbatches."""
    NONE = "none"
    """Nothing stands out."""


class Architecture(StrEnum):
    """What holds of a model's layers: one of dense and moe, and one of mla and kv_heads."""

    DENSE = "dense"
    MOE = "moe"
    MLA = "mla"
    """Multi-head latent attention: one compressed KV vector a token instead of KV heads."""
    KV_HEADS = "kv_heads"
    """Attention with KV heads: multi-head, grouped or multi-query."""


class Move(StrEnum):
    """Which way an axis or a knob goes."""

    RAISE = "raise"
    LOWER = "lower"
    SET_ONE = "set_one"


class RecipeKind(StrEnum):
    """A rule with its reasoning, or one job that somebody measured."""

    PRINCIPLE = "principle"
    CASE = "case"
