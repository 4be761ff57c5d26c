"""vLLM: a `vllm serve` command.

Names as of vllm-project/vllm 00193b8 (`vllm/config/parallel.py`). Its expert parallelism is a
switch: experts lie on all tensor × data ranks or are cut by them, and nothing in between.
"""

from __future__ import annotations

import shlex

from prompts_agent.agents.report import Config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import Framework, refuse_axes, refuse_phase, refuse_placement
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.record import Record

__all__ = ["VLLM"]

KV_DTYPES = {"bf16": None, "fp8": "fp8"}
RANK_ORDER = (Axis.TENSOR, Axis.PIPELINE, Axis.EXPERT, Axis.DATA)


class _Ranks(Record):
    """vLLM's own degrees, and how many servers of that kind run side by side."""

    tensor: int
    data: int
    expert_parallel: bool
    servers: int


def write(layout: Layout, facts: JobFacts) -> Config:
    """A command a server. Raises `LayoutError` for what vLLM cannot express."""
    refuse_phase("vLLM", facts, training=False)
    refuse_axes("vLLM", layout, (Axis.FSDP,), "a server would gather the weights for each token")
    refuse_axes(
        "vLLM", layout, (Axis.CONTEXT,), "its prefill and decode context parallelism reuse ranks"
    )
    if layout.kv_dtype not in KV_DTYPES:
        raise LayoutError(
            f"kv_dtype {layout.kv_dtype} for vLLM",
            rule=f"its KV cache is one of {', '.join(KV_DTYPES)}",
            cure="Plan with another kv_dtype.",
        )
    refuse_placement("vLLM", layout, RANK_ORDER)
    ranks = _ranks(layout, moe=_is_moe(layout, facts))
    arguments = _arguments(layout, facts, ranks)
    command = f"vllm serve {shlex.quote(facts.model_name)}"
    lines = [command, *(f"  {argument}" for argument in arguments)]
    head = [f"# {layout}: {layout.devices} devices."]
    if ranks.servers > 1:
        head.append(f"# Start {ranks.servers} of these servers behind one load balancer.")
    return Config(
        framework=VLLM.name,
        language="bash",
        text="\n".join(head) + "\n" + " \\\n".join(lines) + "\n",
        check_command=_check(facts, ranks, layout),
        notes=_notes(layout, facts, ranks),
    )


def _is_moe(layout: Layout, facts: JobFacts) -> bool:
    if facts.model is not None:
        return facts.model.moe is not None
    return layout.mesh.size(Axis.EXPERT) > 1


def _ranks(layout: Layout, *, moe: bool) -> _Ranks:
    """Our axes in vLLM's words.

    data × tensor of a dense model are independent replicas, which is what its data parallelism is.
    For a MoE it is not: its data ranks share the experts. So replicas of a MoE are servers, and
    the outer part of a tensor axis (`attention_data`) are data ranks.
    """
    mesh = layout.mesh
    tensor, data, expert = (mesh.size(a) for a in (Axis.TENSOR, Axis.DATA, Axis.EXPERT))
    groups = layout.attention_data
    if groups > 1 and not moe:
        raise LayoutError(
            f"attention_data {groups} of a dense model, for vLLM",
            rule="its data ranks share experts and nothing else",
            cure="Plan with attention_data 1.",
        )
    if expert > 1 and not layout.expert_divides:
        if data > 1 or tensor > 1:
            raise LayoutError(
                f"expert {expert} as a factor beside data {data} × tensor {tensor}, for vLLM",
                rule="its experts lie on all tensor × data ranks of a server",
                cure="Plan with expert_divides true.",
            )
        # Each expert rank serves its own requests in attention: a data rank in vLLM's words.
        return _Ranks(tensor=1, data=expert, expert_parallel=True, servers=1)
    if expert > 1 and expert == tensor * data and groups == 1:
        return _Ranks(tensor=tensor, data=data, expert_parallel=True, servers=1)
    if expert not in (1, tensor):
        raise LayoutError(
            f"expert {expert} with tensor {tensor} and data {data}, for vLLM",
            rule="its experts lie on all tensor × data ranks of a server, or are cut by them",
            cure=f"Plan with expert 1, {tensor} or {tensor * data}.",
        )
    if moe:
        split = tensor // groups
        return _Ranks(tensor=split, data=groups, expert_parallel=expert > 1, servers=data)
    return _Ranks(tensor=tensor, data=data, expert_parallel=False, servers=1)


def _arguments(layout: Layout, facts: JobFacts, ranks: _Ranks) -> list[str]:
    found = [
        f"--tensor-parallel-size {ranks.tensor}",
        f"--pipeline-parallel-size {layout.mesh.size(Axis.PIPELINE)}",
        f"--data-parallel-size {ranks.data}",
    ]
    if ranks.expert_parallel:
        found.append("--enable-expert-parallel")
    found.append(f"--max-model-len {facts.sequence}")
    if layout.batch_limit is not None:
        # The limit is a replica's; vLLM counts per data rank, and groups share a replica.
        groups = layout.attention_data
        found.append(f"--max-num-seqs {-(-layout.batch_limit // groups)}")
    if KV_DTYPES[layout.kv_dtype] is not None:
        found.append(f"--kv-cache-dtype {KV_DTYPES[layout.kv_dtype]}")
    return found


def _check(facts: JobFacts, ranks: _Ranks, layout: Layout) -> str:
    """Builds vLLM's own config of these degrees, which checks heads and devices; loads nothing."""
    arguments = (
        f"model={facts.model_name!r}, tensor_parallel_size={ranks.tensor}, "
        f"pipeline_parallel_size={layout.mesh.size(Axis.PIPELINE)}, "
        f"data_parallel_size={ranks.data}, enable_expert_parallel={ranks.expert_parallel}"
    )
    code = f"from vllm import EngineArgs; EngineArgs({arguments}).create_engine_config()"
    return f"python -c {shlex.quote(code)}"


def _notes(layout: Layout, facts: JobFacts, ranks: _Ranks) -> tuple[str, ...]:
    notes = [f"Written for vLLM of {VLLM.since} or later; give --gpu-memory-utilization yourself."]
    notes.append(f"{facts.model_name!r} must be a model id or path that vLLM can load.")
    if any(size.dcn > 1 for size in layout.mesh.root.values()):
        notes.append("Several hosts: add --nnodes and --node-rank, or start it under Ray.")
    if ranks.servers > 1:
        notes.append("Replicas are separate servers: vLLM's data ranks would share the experts.")
    return tuple(notes)


VLLM = Framework(
    name="vllm",
    title="vLLM",
    since="August 2026",
    source="vllm/config/parallel.py",
    write=write,
)
