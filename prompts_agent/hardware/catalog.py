"""Find a chip by any of its names; only the files that are needed are read, each once."""

from __future__ import annotations

import difflib
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from prompts_agent.errors import HardwareError
from prompts_agent.hardware.chip import Chip

__all__ = ["all_chips", "chip_names", "find_chip"]

_DATA = Path(__file__).resolve().parent / "data"
# The C loader is an order of magnitude faster; a PyYAML built without libyaml lacks it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _read(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)  # noqa: S506  (both loaders are safe)


def _key(name: str) -> str:
    """`NVIDIA H100 80GB HBM3` → `nvidiah10080gbhbm3`: case and punctuation do not count."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


@cache
def _index() -> tuple[dict[str, list[str]], dict[str, str], dict[str, list[str]]]:
    """(chip → aliases, key → chip, key → chips it could mean)."""
    data = _read(_DATA / "index.yaml")
    chips: dict[str, list[str]] = data["chips"]
    by_key = {_key(name): chip for chip, aliases in chips.items() for name in (chip, *aliases)}
    ambiguous = {_key(name): list(fits) for name, fits in data["ambiguous"].items()}
    return chips, by_key, ambiguous


@cache
def _load(name: str) -> Chip:
    chips, _, _ = _index()
    return Chip.model_validate({**_read(_DATA / f"{name}.yaml"), "aliases": chips[name]})


def chip_names() -> tuple[str, ...]:
    """The short names, TPUs first, as the index lists them. Reads no chip's file."""
    return tuple(_index()[0])


def all_chips() -> tuple[Chip, ...]:
    """Every chip. Reads every file: not for a path that needs one."""
    return tuple(_load(name) for name in chip_names())


def find_chip(name: str) -> Chip:
    """The chip called `name` by this package, a trace, a data sheet or a cloud's node label.

    Raises `HardwareError` for an unknown name, listing near ones, and for a name such as "A100"
    that fits chips with different memory.
    """
    chips, by_key, ambiguous = _index()
    key = _key(name)
    if key in by_key:
        return _load(by_key[key])
    if key in ambiguous:
        raise HardwareError(
            f"chip {name!r}",
            rule="the name fits several chips with different figures",
            cure=f"Say which: {', '.join(ambiguous[key])}.",
        )
    near = difflib.get_close_matches(key, by_key, n=6, cutoff=0.6)
    fits = list(dict.fromkeys(by_key[match] for match in near))
    hint = f"Did you mean {' or '.join(fits)}? " if fits else ""
    raise HardwareError(
        f"chip {name!r}",
        rule="no such chip is known",
        cure=f"{hint}Known chips: {', '.join(chips)}.",
    )
