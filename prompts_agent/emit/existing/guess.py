"""Which framework a config is of, and its reading."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from prompts_agent.emit import readers
from prompts_agent.emit.existing.existing import Existing
from prompts_agent.emit.existing.file import read_settings
from prompts_agent.emit.existing.reader import Reader
from prompts_agent.emit.existing.settings import Settings
from prompts_agent.errors import InputError

__all__ = ["READERS", "read_config"]


def _found() -> dict[str, Reader]:
    names = sorted(module.name for module in pkgutil.iter_modules(readers.__path__))
    modules = (importlib.import_module(f"{readers.__name__}.{name}") for name in names)
    found: list[Reader] = [module.READER for module in modules]
    return {reader.name: reader for reader in found}


READERS: dict[str, Reader] = _found()
_SAME = {"vllm-tpu": "vllm"}


def read_config(path: Path, framework: str | None = None) -> Existing:
    """The layout that a config sets, with the line of every axis.

    Raises `InputError` for a file that cannot be read, a framework whose configs are not read, and
    a file in which no framework, or more than one, is evident.
    """
    name = _SAME.get(framework or "", framework)
    if name is not None and name not in READERS:
        raise InputError(
            f"a config of {name}",
            rule=f"configs of {', '.join(READERS)} are read"
            + ("; a mesh that a program makes is no file" if name == "jax" else ""),
            cure="Write the layout as the baseline of a workload file.",
        )
    settings = read_settings(path)
    reader = READERS[name] if name is not None else _evident(settings)
    return reader.read(settings)


def _evident(settings: Settings) -> Reader:
    ranked = sorted(READERS.values(), key=lambda reader: -reader.evidence(settings))
    best, second = ranked[0].evidence(settings), ranked[1].evidence(settings)
    if best == 0 or best == second:
        rule = "no framework is evident in it" if best == 0 else "more than one framework fits it"
        raise InputError(
            settings.file, rule=rule, cure=f"Name it: --framework {'|'.join(READERS)}."
        )
    return ranked[0]
