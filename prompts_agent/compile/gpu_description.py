"""GPU description: the text by which XLA's GPU compiler knows a card that is not there.

Newer CUDA plugins hold such texts for common cards, with more in them than data sheets say; those
are preferred. Older plugins hold none and refuse the newer fields, so for them (and for cards that
no plugin holds) a short text is written from public figures.
"""

from __future__ import annotations

import mmap
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from prompts_agent.errors import HardwareError
from prompts_agent.hardware.chip import Chip

__all__ = ["embedded_description", "written_description"]

_DATA = Path(__file__).resolve().parent / "data" / "gpus.yaml"
_PLUGINS = {"jax-cuda13-pjrt": "xla_cuda13", "jax-cuda12-pjrt": "xla_cuda12"}
_TEXT = re.compile(rb'gpu_device_info \{\n[^\0]*?device_description_str: "([^"\0]+)"\n')
_REGISTERS = 65536
"""Registers of a multiprocessor and of a block, on every capability here."""


@cache
def _data() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(_DATA.read_text(encoding="utf-8"))
    return found


def written_description(chip: Chip) -> str:
    """The short text of `chip`, from public figures. Raises `HardwareError` for an unknown card."""
    card = _data()["cards"].get(chip.name)
    if card is None:
        raise HardwareError(
            f"chip {chip.name}",
            rule="no description of it for XLA's GPU compiler is known",
            cure=f"Known cards: {', '.join(_data()['cards'])}.",
        )
    major, minor = str(card["capability"]).split(".")
    limits = _data()["capabilities"][card["capability"]]
    fields = {
        "threads_per_block_limit": 1024,
        "threads_per_warp": 32,
        "shared_memory_per_block": 49152,
        "shared_memory_per_core": limits["shared_bytes"],
        # A block may take all of a multiprocessor's shared memory but 1 KiB that the system keeps.
        "shared_memory_per_block_optin": limits["shared_bytes"] - 1024,
        "threads_per_core_limit": limits["threads"],
        "core_count": card["multiprocessors"],
        "fpus_per_core": card["fp32_lanes"],
        "block_dim_limit_x": 2**31 - 1,
        "block_dim_limit_y": 65535,
        "block_dim_limit_z": 65535,
        "memory_bandwidth": int(chip.hbm_bandwidth_bytes_per_s),
        "l2_cache_size": card["l2_bytes"],
        "clock_rate_ghz": card["clock_ghz"],
        "device_memory_size": chip.usable_hbm_bytes or chip.hbm_bytes,
        "registers_per_core_limit": _REGISTERS,
        "registers_per_block_limit": _REGISTERS,
    }
    lines = [f"  {name}: {value}" for name, value in fields.items()]
    lines.append(f"  cuda_compute_capability {{ major: {major} minor: {minor} }}")
    body = "\n".join(lines)
    return (
        f"gpu_device_info {{\n{body}\n}}\n"
        'platform_name: "CUDA"\n'
        "dnn_version_info { major: 9 minor: 8 patch: 0 }\n"
        f'device_description_str: "{chip.label}"\n'
    )


def embedded_description(chip: Chip, package: str) -> str | None:
    """The text that the installed plugin holds for `chip`; None where it holds none."""
    wanted = _data()["cards"].get(chip.name, {}).get("embedded")
    library = _library(package)
    if wanted is None or library is None:
        return None
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        # Texts lie in a string table; only the stretch between two zero bytes is one text.
        for match in _TEXT.finditer(data):
            if match.group(1).decode(errors="replace") == wanted:
                text = match.group(0)
                return text[text.rfind(b"gpu_device_info {\n") :].decode()
    return None


def _library(package: str) -> Path | None:
    """The plugin's shared library, found without importing it."""
    module = _PLUGINS.get(package)
    try:
        found = find_spec(f"jax_plugins.{module}") if module else None
    except ModuleNotFoundError:
        return None
    places = list(found.submodule_search_locations or ()) if found else []
    candidates = [Path(place) / "xla_cuda_plugin.so" for place in places]
    return next((path for path in candidates if path.is_file()), None)
