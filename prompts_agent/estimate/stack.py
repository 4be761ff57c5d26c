"""Stack: which kind of software a workload runs on."""

from __future__ import annotations

from prompts_agent.estimate.calibration import Stack
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Workload

__all__ = ["stack_of"]

_STACKS: dict[Framework, Stack] = {
    Framework.JAX: "xla",
    Framework.MAXTEXT: "xla",
    Framework.PAX: "xla",
    Framework.AXLEARN: "xla",
    Framework.MEGATRON_LM: "megatron",
    Framework.MEGATRON_BRIDGE: "megatron",
    Framework.NEMO: "megatron",
    Framework.MEGATRON_CLASSIC: "classic",
    Framework.NANOTRON: "eager",
    Framework.INTERNEVO: "classic",
    Framework.TORCHTITAN: "fsdp",
    Framework.LLM_FOUNDRY: "fsdp",
    Framework.PYTORCH: "fsdp",
}
_SERVERS: dict[Framework, Stack] = {
    Framework.VLLM: "vllm",
    Framework.TENSORRT_LLM: "tensorrt-llm",
    Framework.SGLANG: "sglang",
}


def stack_of(workload: Workload) -> Stack | None:
    """None on TPUs, whose platform's constants hold. A server on GPUs that is not known by name is
    taken for vLLM.

    Of trainers the framework decides where it is named. Else a workload's constraints say what its
    software can do: experts that divide the other ranks are Megatron-Core's; data and fsdp alone
    are PyTorch's FSDP; no fsdp axis at all is a trainer with pipeline and tensor layers of its own.
    Without constraints it is a compiler's (JAX on GPUs).
    """
    if find_chip(workload.topology.chip).platform == "tpu":
        return None
    if not workload.phase.is_training:
        return _SERVERS.get(workload.framework, "vllm") if workload.framework else "vllm"
    if workload.framework in _STACKS:
        return _STACKS[workload.framework]
    constraints = workload.constraints
    if constraints.expert_divides:
        return "megatron"
    if set(constraints.axes) <= {Axis.DATA, Axis.FSDP}:
        return "fsdp"
    return "xla" if Axis.FSDP in constraints.axes else "classic"
