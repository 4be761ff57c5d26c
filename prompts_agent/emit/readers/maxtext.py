"""MaxText's YAML, or the `key=value` words of a command (names as of maxtext 0.2.5)."""

from __future__ import annotations

import math
from typing import Any

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.reader import Reader, Taking
from prompts_agent.emit.existing.settings import Settings
from prompts_agent.layout.mesh import Axis

__all__ = ["READER"]

AXES = {
    Axis.PIPELINE: ("pipeline",),
    Axis.DATA: ("data", "diloco"),
    Axis.FSDP: ("fsdp", "fsdp_transpose"),
    Axis.EXPERT: ("expert",),
    Axis.CONTEXT: ("context",),
    Axis.TENSOR: ("tensor", "tensor_sequence"),
}
DEFAULTS = {("ici", Axis.FSDP): -1, ("dcn", Axis.DATA): -1}
"""`base.yml`: what is left goes to fsdp inside a slice and to data across slices."""

REMAT = {
    "full": "full",
    "minimal": "minimal",
    "minimal_with_context": "minimal",
    "save_dot_with_context_except_mlp": "minimal",
    "save_dot_except_mlp": "minimal",
    "minimal_offloaded": "offload",
    "qkv_proj_offloaded": "offload",
}
WEIGHTS = {"float32": "fp32", "bfloat16": "bf16"}
OFFLOADED = ("decoder_layer_input", "query_proj", "key_proj", "value_proj")


def read(settings: Settings) -> Existing:
    """Both parts of every axis, the batch a device, and remat."""
    take = Taking(settings)
    sizes = {part: _sizes(take, part) for part in ("ici", "dcn")}
    _traps(take)
    _zero(take, fsdp=max(sizes[part][Axis.FSDP] for part in sizes))
    stages = max(abs(sizes[part][Axis.PIPELINE]) for part in ("ici", "dcn"))
    return take.existing(
        framework="maxtext",
        training=True,
        split=True,
        **sizes,
        knobs=_knobs(take, stages=stages),
        model=take.text("model", "model_name"),
        per_device_batch=take.fraction("batch", "per_device_batch_size"),
        sequence=take.number("sequence", "max_target_length"),
        weights=take.choice("weights", WEIGHTS, "weight_dtype"),
        layers_per_chunk=take.number("virtual_stages", "num_layers_per_pipeline_stage")
        if stages > 1
        else None,
        unknown=_unknown(take),
    )


def _sizes(take: Taking, part: str) -> dict[Axis, int]:
    found: dict[Axis, int] = {}
    for axis, names in AXES.items():
        keys = [f"{part}_{name}_parallelism" for name in names]
        sizes = [take.number(f"{part}.{axis}", key, smallest=-1) for key in keys]
        given = [size for size in sizes if size not in (None, 1)]
        written = take.settings.find(*keys)
        default = DEFAULTS.get((part, axis), 1)
        found[axis] = _product([size for size in given if size]) if given else default
        if written is not None and not given:
            found[axis] = 1
        if len(given) > 1 and axis is Axis.TENSOR:
            take.fault(
                f"{part}.{axis}",
                "two_tensor_axes",
                f"{' and '.join(keys)} are both above 1",
                "Choose one of the two: they cut the same dims.",
            )
        if written is not None:
            take.lines.setdefault(axis.value, written.line)
            if found[axis] != 1:
                take.lines[axis.value] = written.line
                take.written[axis.value] = written.written
    return found


def _product(sizes: list[int]) -> int:
    """Of both parts of an axis; open where one of them is."""
    return -1 if -1 in sizes else math.prod(sizes)


def _knobs(take: Taking, *, stages: int) -> dict[str, Any]:
    found: dict[str, Any] = {"weights_over_context": True, "expert_divides": False}
    remat = _remat(take)
    if remat is not None:
        found["remat"] = remat
    steps = take.number("gradient_accumulation", "gradient_accumulation_steps")
    microbatches = take.number("gradient_accumulation", "num_pipeline_microbatches", smallest=-1)
    if stages > 1:
        steps = microbatches if microbatches and microbatches > 0 else None
    if steps is not None:
        found["gradient_accumulation"] = steps
    keys = [f"{part}_tensor_sequence_parallelism" for part in ("ici", "dcn")]
    entries = [entry for key in keys if (entry := take.settings.find(key)) is not None]
    found["sequence_parallel"] = any(entry.value not in (1, None) for entry in entries)
    zero = take.switch("zero_stage", "shard_optimizer_over_data")
    found["zero_stage"] = int(bool(zero))
    return found


def _remat(take: Taking) -> str | None:
    entry = take.settings.find("remat_policy")
    if entry is not None and entry.value == "custom":
        values = [take.text(name, name) for name in OFFLOADED]
        if values == ["offload"] * len(values):
            take.entry("remat", "remat_policy")
            return "offload"
    return take.choice("remat", REMAT, "remat_policy")


def _traps(take: Taking) -> None:
    for part in ("ici", "dcn"):
        key = f"{part}_sequence_parallelism"
        entry = take.entry(f"{part}.sequence", key)
        if entry is not None and entry.value not in (1, None):
            take.fault(
                f"{part}.sequence",
                "no_effect",
                f"{key} is {entry.value}: sequence is not among MaxText's mesh_axes, so it has no "
                "effect",
                f"Write {part}_context_parallelism to cut the sequence.",
            )


def _zero(take: Taking, *, fsdp: int) -> None:
    """`MaxTextConfig` refuses the two together (`src/maxtext/configs/types.py`)."""
    if fsdp > 1 and take.switch("zero_stage", "shard_optimizer_over_data"):
        take.fault(
            "zero_stage",
            "zero_with_fsdp",
            f"shard_optimizer_over_data beside fsdp {fsdp}: MaxText refuses the two together",
            "Write false: fsdp shards the optimizer already.",
        )


def _unknown(take: Taking) -> tuple[object, ...]:
    take.rest(r"^(ici|dcn)_\w+_parallelism$|^custom_mesh|^logical_axis_rules$|^num_slices$")
    return tuple(sorted(take.unknown, key=lambda item: item.line))


READER = Reader(
    name="maxtext",
    words=r"(?i)\bmaxtext\b",
    keys=frozenset(
        {f"{part}_{name}_parallelism" for part in ("ici", "dcn") for a in AXES for name in AXES[a]}
        | {"per_device_batch_size", "max_target_length", "remat_policy", "base_config"}
    ),
    read=read,
)
