"""Find an architecture by any of its names; only the index and one family's file are read."""

from __future__ import annotations

import difflib
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from prompts_agent.errors import ModelError
from prompts_agent.model.spec import ModelSpec

__all__ = ["find_model", "model_names"]

_DATA = Path(__file__).resolve().parent / "data"
# The C loader is an order of magnitude faster; a PyYAML built without libyaml lacks it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# What owners append to a name without changing the architecture.
_TAIL = re.compile(
    r"[-_ ](?:instruct|it|pt|chat|hf|base|bf16|fp8|nvfp4|mxfp4|awq|gptq|thinking|2507|dynamic)$",
    re.IGNORECASE,
)


def _read(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)  # noqa: S506  (both loaders are safe)


def _key(name: str) -> str:
    """`meta-llama/Llama-3.1-70B` → `llama3170b`: the owner, case and punctuation do not count."""
    bare = re.sub(r"^[\w.-]+/(?=[A-Za-z])", "", name.strip())
    letters = re.sub(r"[^a-z0-9]", "", bare.casefold())
    return re.sub(r"^deepseekv(?=\d)", "deepseek", letters)


@cache
def _index() -> tuple[dict[str, str], dict[str, str]]:
    """(model → file, key → model)."""
    data: dict[str, dict[str, list[str]]] = _read(_DATA / "index.yaml")
    files = {model: file for file, models in data.items() for model in models}
    keys = {
        _key(name): model
        for models in data.values()
        for model, aliases in models.items()
        for name in (model, *aliases)
    }
    return files, keys


@cache
def _family(file: str) -> dict[str, ModelSpec]:
    data = _read(_DATA / f"{file}.yaml")
    specs = (ModelSpec.model_validate({**data["defaults"], **model}) for model in data["models"])
    return {spec.name: spec for spec in specs}


def model_names() -> tuple[str, ...]:
    """The short names, family by family. Reads no family's file."""
    return tuple(_index()[0])


def find_model(name: str) -> ModelSpec:
    """The architecture called `name`: a short name, a Hugging Face id, or one of its variants.

    Raises `ModelError` for an unknown name, listing near ones.
    """
    files, keys = _index()
    candidate = name.strip()
    while candidate:
        model = keys.get(_key(candidate))
        if model is not None:
            return _family(files[model])[model]
        shorter = _TAIL.sub("", candidate)
        if shorter == candidate:
            break
        candidate = shorter
    near = difflib.get_close_matches(_key(candidate), keys, n=6, cutoff=0.6)
    fits = list(dict.fromkeys(keys[match] for match in near))
    hint = f"Did you mean {' or '.join(fits)}? " if fits else ""
    raise ModelError(
        f"model {name!r}",
        rule="no such architecture is known",
        cure=f"{hint}Give its config.json, or one of the {len(files)} known names, such as "
        f"llama3.1-8b, mixtral-8x7b or deepseek3-671b.",
    )
