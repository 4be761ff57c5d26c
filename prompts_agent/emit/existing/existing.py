"""Existing: what a config says of its layout and job, before the hardware fills in the rest."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from prompts_agent.layout.mesh import Axis
from prompts_agent.record import Record

__all__ = ["Existing", "Fault", "Unknown"]


class Unknown(Record):
    """A setting that bears on the layout and was not understood, and why."""

    line: int
    key: str
    value: str
    why: str


class Fault(Record):
    """What is wrong with the config by its framework's own rules. `line` 0: the whole file."""

    line: int
    rule: str
    """A short name, for machines."""
    text: str
    cure: str
    note: bool = False
    """Worth knowing, and no reason to refuse the config."""


class Existing(Record):
    """A config, read. Sizes of -1 take the devices that the others leave."""

    framework: str
    file: str
    training: bool
    ici: dict[Axis, int]
    """Sizes inside a slice where `split`; else whole degrees."""
    dcn: dict[Axis, int] = Field(default_factory=dict)
    split: bool = False
    """The config says itself what crosses slices; else degrees decide it."""
    knobs: dict[str, Any] = Field(default_factory=dict)
    """Fields of Layout that the config decides."""
    model: str | None = None
    dims: dict[str, Any] | None = None
    """Fields of ModelSpec, where the config writes the model out."""
    global_batch: int | None = None
    per_device_batch: float | None = None
    """Sequences a device in one pass, where that is how the framework counts (MaxText)."""
    sequence: int | None = None
    weights: str | None = None
    """dtype of the master weights; serving: of the weights as they are held."""
    layers_per_chunk: int | None = None
    """Layers of one chunk of a pipeline stage, where `virtual_stages` follows from it."""
    devices: int | None = None
    hosts: int | None = None
    lines: dict[str, int] = Field(default_factory=dict)
    """Axis, knob or field → line."""
    written: dict[str, str] = Field(default_factory=dict)
    """Axis, knob or field → the key as the file spells it."""
    values: dict[str, str] = Field(default_factory=dict)
    """Axis, knob or field → its value as the file gives it."""
    form: Literal["yaml", "shell", "python", "toml"] = "yaml"
    unknown: tuple[Unknown, ...] = ()
    faults: tuple[Fault, ...] = ()

    def line(self, *roles: str) -> int:
        """The line of the first role that the file sets; 0 where it sets none."""
        return next((self.lines[role] for role in roles if role in self.lines), 0)
