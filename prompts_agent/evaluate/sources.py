"""Which framework and which collection a workload file's source belongs to."""

from __future__ import annotations

import re

__all__ = ["collection_of", "framework_of"]

# By what a source names, first match first.
_FRAMEWORKS = (
    ("dgxc-benchmarking", "NeMo"),
    ("NeMo-Framework-Launcher", "NeMo"),
    ("Megatron-Bridge", "Megatron-Bridge"),
    ("training_results", "MLPerf training"),
    ("inference_results", "MLPerf inference"),
    ("llm-foundry", "llm-foundry"),
    ("tpu-recipes", "MaxText"),
    ("maxtext", "MaxText"),
    ("paxml", "Pax"),
    ("jetstream", "JetStream"),
    ("nanotron", "nanotron"),
    ("InternEvo", "InternEvo"),
    ("bigscience", "Megatron-DeepSpeed"),
    ("axlearn", "axlearn"),
    ("tpu-inference", "tpu-inference"),
    ("InferenceX", "InferenceX"),
    ("aiconfigurator", "GPU servers"),
    ("llm-analysis", "Megatron-LM"),
    ("Megatron-LM", "Megatron-LM"),
    ("GLM-130B", "Megatron-DeepSpeed"),
    ("PROMPTS", "PROMPTS paper"),
)


def framework_of(source: str | None) -> str:
    """The framework that a source's repository stands for, or "other"."""
    text = (source or "").casefold()
    return next((name for key, name in _FRAMEWORKS if key.casefold() in text), "other")


def collection_of(source: str | None) -> str:
    """`owner/repository` of a source; its first words where it names none."""
    match = re.match(r"\s*([\w.-]+/[\w.-]+)", source or "")
    if match:
        return match[1]
    return " ".join((source or "unknown").split()[:2]).rstrip(",;:")
