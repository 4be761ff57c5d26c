"""Framework: the training or serving software that a job runs on, by name."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Framework"]


class Framework(StrEnum):
    """Software whose kernels, overlap and way of sharding are known apart. A job on software that
    is not listed names none.
    """

    JAX = "jax"
    MAXTEXT = "maxtext"
    PAX = "pax"
    AXLEARN = "axlearn"
    MEGATRON_LM = "megatron-lm"
    """Megatron-LM on Megatron-Core, 2023 or later."""
    MEGATRON_BRIDGE = "megatron-bridge"
    NEMO = "nemo"
    MEGATRON_CLASSIC = "megatron-classic"
    """Megatron-LM before Megatron-Core (2019 to 2022), and Megatron-DeepSpeed."""
    NANOTRON = "nanotron"
    INTERNEVO = "internevo"
    TORCHTITAN = "torchtitan"
    LLM_FOUNDRY = "llm-foundry"
    PYTORCH = "pytorch"
    """PyTorch with its own FSDP, tensor and pipeline parallelism."""
    VLLM = "vllm"
    SGLANG = "sglang"
    TENSORRT_LLM = "tensorrt-llm"
    JETSTREAM = "jetstream"
