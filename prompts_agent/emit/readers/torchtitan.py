"""torchtitan's Python configs, its flags, and the TOML files of versions before 2026."""

from __future__ import annotations

from typing import Any

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.python_text import CALL
from prompts_agent.emit.existing.reader import Reader, Taking
from prompts_agent.emit.existing.settings import Settings
from prompts_agent.layout.mesh import Axis

__all__ = ["READER"]

DEGREES = {
    Axis.PIPELINE: "pipeline_parallel_degree",
    Axis.DATA: "data_parallel_replicate_degree",
    Axis.FSDP: "data_parallel_shard_degree",
    Axis.EXPERT: "expert_parallel_degree",
    Axis.CONTEXT: "context_parallel_degree",
    Axis.TENSOR: "tensor_parallel_degree",
}
REMAT = {
    "fullac.config()": "full",
    "selectiveac.config()": "minimal",
    "full": "full",
    "selective": "minimal",
    "none": "none",
}
MODELS = {
    "llama3_8b": "llama3.1-8b",
    "llama3_70b": "llama3.1-70b",
    "llama3_405b": "llama3.1-405b",
    "qwen3_0_6b": "qwen3-0.6b",
    "qwen3_1_7b": "qwen3-1.7b",
    "qwen3_14b": "qwen3-14b",
    "qwen3_32b": "qwen3-32b",
    "qwen3_30b_a3b": "qwen3-30b-a3b",
    "deepseek_v3_671b": "deepseek3-671b",
    "gpt_oss_20b": "gpt-oss-20b",
    "gpt_oss_120b": "gpt-oss-120b",
    "moonlight_16b_a3b": "moonlight-16b-a3b",
}


def read(settings: Settings) -> Existing:
    """Degrees, the batch of a rank, and activation checkpointing."""
    take = Taking(settings)
    degrees = {
        axis: take.number(axis.value, key, smallest=-1) or (-1 if axis is Axis.FSDP else 1)
        for axis, key in DEGREES.items()
    }
    # From a flag of a command: --config llama3_8b; from Python: a call without arguments.
    bases = (entry for entry in settings.entries if entry.key in (CALL, "config"))
    call = next((entry for entry in bases if entry.value in MODELS), None)
    local = take.number("microbatch", "local_batch_size")
    total = take.number("batch", "global_batch_size", smallest=-1)
    knobs = _knobs(take, local, piped=degrees[Axis.PIPELINE] > 1)
    entry = settings.find("expert_tensor_parallel_degree")
    if entry is not None:
        take.entry("expert_tensor", "expert_tensor_parallel_degree")
        take.fault(
            "expert_tensor",
            "no_such_key",
            "expert_tensor_parallel_degree is no longer a setting of torchtitan",
            "Remove it: expert ranks include the tensor ranks.",
        )
    take.rest(r"parallel.*degree$|^pipeline_parallel_schedule$|^num_tokens_per_")
    return take.existing(
        framework="torchtitan",
        training=True,
        ici=degrees,
        knobs=knobs,
        model=MODELS[str(call.value)] if call is not None else None,
        global_batch=total if total and total > 0 else None,
        sequence=take.number("sequence", "seq_len"),
        weights=take.choice("weights", {"bfloat16": "bf16", "float32": "fp32"}, "dtype"),
        layers_per_chunk=take.number("virtual_stages", "pipeline_parallel_layers_per_stage"),
    )


def _knobs(take: Taking, local: int | None, *, piped: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"expert_divides": True, "weights_over_context": True, "zero_stage": 0}
    microbatch = take.number("microbatch", "pipeline_parallel_microbatch_size") if piped else local
    if microbatch is not None:
        found["microbatch"] = microbatch
    remat = _remat(take)
    if remat is not None:
        found["remat"] = remat
    parallel = take.switch("sequence_parallel", "enable_sequence_parallel")
    tensor = take.settings.find(DEGREES[Axis.TENSOR])
    found["sequence_parallel"] = parallel is not False and tensor is not None and tensor.value != 1
    schedule = take.text("schedule", "pipeline_parallel_schedule")
    if schedule is not None and schedule.lower() not in ("1f1b", "interleaved1f1b", "gpipe"):
        entry = take.settings.find("pipeline_parallel_schedule")
        if entry is not None:
            take.not_understood(entry, "this schedule is not modelled; 1F1B is assumed")
    return found


def _remat(take: Taking) -> str | None:
    entry = take.settings.find("activation_checkpoint")
    if entry is not None and entry.value is None:
        take.entry("remat", "activation_checkpoint")
        return "none"
    mode = take.settings.form == "toml"
    keys = ("activation_checkpoint", "mode") if mode else ("activation_checkpoint",)
    return take.choice("remat", REMAT, *keys) or ("minimal" if entry is None else None)


READER = Reader(
    name="torchtitan",
    words=r"(?i)\btorchtitan\b",
    keys=frozenset((*DEGREES.values(), "local_batch_size")),
    read=read,
)
