"""What a device calls itself. TPUs give a name; GPUs give a capability, cores and memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prompts_agent.units import GB

__all__ = ["gpu_label", "tpu_label"]

# (compute capability, SMs, memory in decimal GB at least) → the name that nvidia-smi prints.
# Source: NVIDIA's data sheets and CUDA's table of compute capabilities. First match counts.
_NVIDIA = (
    ((7, 0), 80, 30, "Tesla V100-SXM2-32GB"),
    ((7, 0), 80, 0, "Tesla V100-SXM2-16GB"),
    ((7, 5), 40, 0, "Tesla T4"),
    ((8, 0), 108, 60, "NVIDIA A100-SXM4-80GB"),
    ((8, 0), 108, 0, "NVIDIA A100-SXM4-40GB"),
    ((8, 6), 72, 0, "NVIDIA A10"),
    ((8, 9), 58, 0, "NVIDIA L4"),
    ((8, 9), 142, 0, "NVIDIA L40S"),
    ((9, 0), 132, 130, "NVIDIA H200"),
    ((9, 0), 132, 90, "NVIDIA H100 NVL"),
    ((9, 0), 132, 0, "NVIDIA H100 80GB HBM3"),
    ((9, 0), 114, 0, "NVIDIA H100 PCIe"),
    ((9, 0), 78, 0, "NVIDIA H20"),
    ((10, 0), 148, 0, "NVIDIA B200"),
)
# AMD's capability is the gfx number without its stepping: 9.4 is gfx940 to gfx942, of which only
# gfx942 was sold. Source: LLVM's AMDGPU processor table.
_AMD = {(9, 0): "gfx90a", (9, 4): "gfx942", (9, 5): "gfx950"}
_MI325X_BYTES = 230 * GB  # 256 GB against the MI300X's 192; both are gfx942


def tpu_label(stats: Mapping[str, Any]) -> str:
    """`TPU v6 Lite`."""
    return str(stats.get("device_type_string") or "TPU")


def gpu_label(stats: Mapping[str, Any]) -> str:
    """`AMD gfx942`, `NVIDIA A100-SXM4-80GB`, or the bare facts: `NVIDIA sm_61, 20 SMs`."""
    capability = (
        int(stats.get("compute_cap_major") or 0),
        int(stats.get("compute_cap_minor") or 0),
    )
    cores, memory = int(stats.get("core_count") or 0), int(stats.get("memory_size") or 0)
    if str(stats.get("device_vendor") or "").upper() == "AMD":
        if capability == (9, 4) and memory > _MI325X_BYTES:
            return "AMD Instinct MI325X"
        if not capability[0]:
            return "AMD GPU"
        return f"AMD {_AMD.get(capability, f'gfx{capability[0]}{capability[1]}x')}"
    for known, sms, least_gb, name in _NVIDIA:
        if capability == known and cores == sms and memory >= least_gb * GB:
            return name
    return f"NVIDIA sm_{capability[0]}{capability[1]}, {cores} SMs"
