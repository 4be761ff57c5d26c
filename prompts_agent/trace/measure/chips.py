"""Which chip of the hardware table a trace's device is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompts_agent.errors import HardwareError
from prompts_agent.trace.capture import Device

if TYPE_CHECKING:
    from prompts_agent.hardware.chip import Chip

__all__ = ["chip_of", "peak_flops"]

_MEMORY_TOLERANCE = 0.2
_DTYPES = {
    "bf16": ("bf16",),
    "f16": ("fp16", "bf16"),
    "s8": ("int8",),
    "u8": ("int8",),
    "f32": ("tf32", "fp32", "bf16"),
}


def chip_of(device: Device) -> Chip | None:
    """The chip, by the label with and without its vendor; None for CPUs and unknown labels.

    A label that fits chips with different memory (gfx942) counts only where the memory agrees.
    """
    from prompts_agent.hardware.catalog import find_chip

    if device.platform == "cpu":
        return None
    for label in (device.label, device.label.split(" ", 1)[-1]):
        try:
            chip = find_chip(label)
        except HardwareError:
            continue
        seen = device.memory_bytes
        if seen and abs(seen / chip.hbm_bytes - 1) > _MEMORY_TOLERANCE:
            return None
        return chip
    return None


def peak_flops(chip: Chip | None, device: Device, dtype: str) -> float | None:
    """FLOP/s of the matrix units for operands of an HLO type; without a chip the trace's own."""
    if chip is None:
        return device.peak_flops
    for name in _DTYPES.get(dtype, ("fp8",) if dtype.startswith("f8") else ("bf16",)):
        if name in chip.peak_flops:
            return chip.peak_flops[name]
    return chip.peak_flops.get("bf16") or chip.peak_flops.get("fp16")
