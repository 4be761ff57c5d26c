"""Stack: which kind of training software a workload runs on, as far as its constraints show."""

from __future__ import annotations

from prompts_agent.estimate.calibration import Stack
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Workload

__all__ = ["stack_of"]


def stack_of(workload: Workload) -> Stack | None:
    """None on TPUs and in serving, whose platform's constants hold.

    A workload's constraints say what its software can do: experts that divide the other ranks are
    Megatron-Core's; data and fsdp alone are PyTorch's FSDP; no fsdp axis at all is a trainer with
    pipeline and tensor layers of its own. Without constraints it is a compiler's (JAX on GPUs).
    """
    if find_chip(workload.topology.chip).platform == "tpu" or not workload.phase.is_training:
        return None
    constraints = workload.constraints
    if constraints.expert_divides:
        return "megatron"
    if set(constraints.axes) <= {Axis.DATA, Axis.FSDP}:
        return "fsdp"
    return "xla" if Axis.FSDP in constraints.axes else "eager"
