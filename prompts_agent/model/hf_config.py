"""A Hugging Face config.json → ModelSpec. Only the text part of a multimodal config is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prompts_agent.errors import ModelError
from prompts_agent.model.hf_readers import READERS
from prompts_agent.model.hf_values import HfValues
from prompts_agent.model.spec import ModelSpec

__all__ = ["SUPPORTED_MODEL_TYPES", "from_hf_config"]

SUPPORTED_MODEL_TYPES: tuple[str, ...] = tuple(READERS)


def from_hf_config(config: Mapping[str, Any] | Path, *, name: str | None = None) -> ModelSpec:
    """The architecture that `config` describes: its contents, its path, or the directory it is in.

    `name` defaults to the config's `_name_or_path`, else to its model_type.
    Raises `ModelError` for a file that is no JSON object, an unknown model_type (listing the
    supported ones), a missing key, or a value that cannot be a dim.
    """
    data, origin = _load(config)
    text = data.get("text_config")
    if isinstance(text, Mapping):
        # A multimodal config keeps the tie of its tables outside the text part.
        keep = ("tie_word_embeddings", "model_type")
        data = {key: data[key] for key in keep if key in data} | dict(text)
    model_type = str(data.get("model_type"))
    reader = READERS.get(model_type)
    if reader is None:
        raise ModelError(
            f"model_type {model_type!r} in {origin}",
            rule="there is no reader for this architecture",
            cure=f"Supported: {', '.join(SUPPORTED_MODEL_TYPES)}. For another, write the dims into "
            "the workload file.",
        )
    fields = reader(HfValues(data, origin))
    title = name or str(data.get("_name_or_path") or "") or model_type
    return ModelSpec(**{"name": title, "family": model_type, "source": origin, **fields})


def _load(config: Mapping[str, Any] | Path) -> tuple[dict[str, Any], str]:
    if isinstance(config, Mapping):
        return dict(config), "config.json"
    path = config / "config.json" if config.is_dir() else config
    cure = "Give the config.json of a Hugging Face model, or the directory that holds it."
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"config {str(path)!r}", rule=f"cannot be read as JSON ({error})", cure=cure
        ) from error
    if not isinstance(data, dict):
        raise ModelError(
            f"config {str(path)!r}", rule="a config.json is one JSON object", cure=cure
        )
    return data, str(path)
