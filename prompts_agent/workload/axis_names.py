"""Names that programs and people give to mesh axes, and the axis that each means here."""

from __future__ import annotations

from prompts_agent.layout.mesh import Axis

__all__ = ["AXIS_SYNONYMS", "axis_named"]

# From the axis names of MaxText, axlearn, Levanter, Tunix, Megatron, torchtitan, vLLM and the
# tutorials of jax. `data`-like names are data axes here; whether weights are cut over one, which
# would make it fsdp, only shapes can tell (see `infer`).
AXIS_SYNONYMS: dict[str, Axis] = {
    **dict.fromkeys(
        ("model", "mdl", "mp", "tp", "tensor_parallel", "tensor_model_parallel"), Axis.TENSOR
    ),
    **dict.fromkeys(("heads", "mlp", "tensor_transpose", "tensor_sequence"), Axis.TENSOR),
    **dict.fromkeys(
        (
            "seq",
            "sp",
            "sequence",
            "cp",
            "context_parallel",
            "ring",
            "ulysses",
            "context_usp_ulysses",
        ),
        Axis.CONTEXT,
    ),
    **dict.fromkeys(
        (
            "replica",
            "replicas",
            "dp",
            "batch",
            "data_parallel",
            "replicate",
            "dp_replicate",
            "diloco",
        ),
        Axis.DATA,
    ),
    **dict.fromkeys(
        ("zero", "shard", "dp_shard", "fsdp_transpose", "data_shard", "fully_sharded"), Axis.FSDP
    ),
    **dict.fromkeys(("pp", "stage", "stages", "pipe", "pipeline_parallel"), Axis.PIPELINE),
    **dict.fromkeys(("ep", "experts", "expert_parallel"), Axis.EXPERT),
}


def axis_named(name: str) -> Axis | None:
    """The axis that `name` means, or None. Case, hyphens and a trailing `_axis` do not matter."""
    plain = name.strip().lower().replace("-", "_").removesuffix("_axis")
    if plain in set(Axis):
        return Axis(plain)
    return AXIS_SYNONYMS.get(plain)
