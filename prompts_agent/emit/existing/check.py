"""One config file, checked: its own model and hardware where nobody names others."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.guess import read_config
from prompts_agent.emit.existing.lint import Lint, lint
from prompts_agent.errors import ModelError
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.model.catalog import find_model
from prompts_agent.model.spec import ModelSpec

__all__ = ["check_config", "model_of", "named_model"]


def check_config(
    file: Path,
    framework: str | None = None,
    *,
    target: str | None = None,
    model: str | None = None,
    global_batch: int | None = None,
    sequence: int | None = None,
) -> Lint:
    """The faults of a config file. Raises `InputError` for what cannot be read or is not known."""
    topology = parse_topology(target) if target is not None else None
    existing = read_config(file, framework)
    return lint(
        existing,
        topology=topology,
        model=named_model(model) if model is not None else model_of(existing),
        global_batch=global_batch,
        sequence=sequence,
    )


def model_of(existing: Existing) -> ModelSpec | None:
    """The model that the config itself names or writes out, where that is enough."""
    try:
        if existing.dims is not None:
            return ModelSpec(
                name=f"the model of {Path(existing.file).name}",
                family="custom",
                source=existing.file,
                **existing.dims,
            )
        return find_model(existing.model) if existing.model is not None else None
    except (ModelError, ValidationError):
        return None


def named_model(name: str) -> ModelSpec:
    """A model by its name, or by the path of its config.json. Raises `ModelError`."""
    path = Path(name)
    if path.suffix == ".json" or path.is_dir():
        from prompts_agent.model.hf_config import from_hf_config

        return from_hf_config(path)
    return find_model(name)
