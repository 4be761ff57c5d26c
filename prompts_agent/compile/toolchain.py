"""Toolchain: which compiler is installed for a chip, and how to get the one that is not.

Reads package metadata alone: no compiler and no jax is imported to find out.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from prompts_agent.hardware.chip import Chip
from prompts_agent.record import Record

__all__ = ["TESTED", "Toolchain", "find_toolchain", "how_to_get"]

TESTED: dict[str, tuple[str, ...]] = {
    "jax": ("0.10.2", "0.12.0.1"),
    "libtpu": ("0.0.42.1", "0.0.50.1", "0.0.52"),
    "jax-cuda13-pjrt": ("0.10.2", "0.12.0.1"),
}
"""Versions whose dumps the parsers were tested on. Dumps have no version of their own."""

_COMPILERS = {"tpu": ("libtpu",), "gpu": ("jax-cuda13-pjrt", "jax-cuda12-pjrt")}


class Toolchain(Record):
    """An installed compiler: its package, and the versions that decide what it makes."""

    platform: str
    compiler: str
    versions: dict[str, str]

    @property
    def tested(self) -> bool:
        """Every version is one that the dump parsers were tested on."""
        return all(found in TESTED.get(name, (found,)) for name, found in self.versions.items())

    def __str__(self) -> str:
        return ", ".join(f"{name} {found}" for name, found in self.versions.items())


def find_toolchain(chip: Chip) -> Toolchain | None:
    """The compiler for `chip`, or None where it is not installed or does not exist."""
    if not _has_compiler(chip):
        return None
    jax = _version("jax")
    for package in _COMPILERS[chip.platform]:
        found = _version(package)
        if found is not None and jax is not None:
            versions = {"jax": jax, "jaxlib": _version("jaxlib") or "unknown", package: found}
            return Toolchain(platform=chip.platform, compiler=package, versions=versions)
    return None


def how_to_get(chip: Chip) -> str:
    """One sentence: what to install so that layouts for `chip` can be compiled."""
    if not _has_compiler(chip):
        return (
            f"No compiler for {chip.label} runs without one: XLA's plugin for it is built for "
            "machines that have the card."
        )
    extra = chip.platform
    licence = (
        " (libtpu is Google's, under the Google Cloud Platform Terms of Service)"
        if extra == "tpu"
        else ""
    )
    return (
        f"The compiler for {chip.label} comes with `pip install 'prompts-agent[{extra}]'`{licence}."
    )


def _has_compiler(chip: Chip) -> bool:
    return chip.platform == "tpu" or chip.vendor == "NVIDIA"


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
