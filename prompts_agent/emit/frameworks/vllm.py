"""vLLM: a `vllm serve` command.

Names as of vllm-project/vllm 00193b8 (`vllm/config/parallel.py`). Its expert parallelism is a
switch: experts lie on all tensor × data ranks or are cut by them, and nothing in between.
"""

from __future__ import annotations

import shlex

from prompts_agent.agents.report import Config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import Framework, refuse_all_but_serving, refuse_placement
from prompts_agent.emit.server import Ranks, batch_limit, command_text, is_moe, replicas_that_share
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Constraints

__all__ = ["FRAMEWORK"]

KV_DTYPES = {"bf16": None, "fp8": "fp8"}
RANK_ORDER = (Axis.TENSOR, Axis.PIPELINE, Axis.EXPERT, Axis.DATA)


def write(layout: Layout, facts: JobFacts) -> Config:
    """A command a server. Raises `LayoutError` for what vLLM cannot express."""
    if facts.platform == "tpu":
        from prompts_agent.emit.frameworks.vllm_tpu import write as write_for_tpu

        return write_for_tpu(layout, facts)
    refuse_all_but_serving("vLLM", layout, facts, KV_DTYPES)
    refuse_placement("vLLM", layout, RANK_ORDER)
    ranks = _ranks(layout, moe=is_moe(layout, facts))
    return Config(
        framework=FRAMEWORK.name,
        language="bash",
        text=command_text(
            layout,
            ["vllm", "serve", facts.hub_name],
            _arguments(layout, facts, ranks),
            servers=ranks.servers,
        ),
        check_command=_check(facts, ranks, layout),
        notes=_notes(layout, facts, ranks),
    )


def _ranks(layout: Layout, *, moe: bool) -> Ranks:
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
        return Ranks(tensor=1, data=expert, expert=expert)
    share = replicas_that_share(layout)
    if share > 1:
        return Ranks(
            tensor=tensor // groups, data=share * groups, expert=expert, servers=data // share
        )
    if expert not in (1, tensor):
        raise LayoutError(
            f"expert {expert} with tensor {tensor} and data {data}, for vLLM",
            rule="its experts lie on all tensor × data ranks of a server, or are cut by them",
            cure=f"Plan with expert 1, {tensor} or {tensor * data}.",
        )
    if moe:
        split = tensor // groups
        return Ranks(tensor=split, data=groups, expert=expert, servers=data)
    return Ranks(tensor=tensor, data=data)


def _arguments(layout: Layout, facts: JobFacts, ranks: Ranks) -> list[str]:
    found = [
        f"--tensor-parallel-size {ranks.tensor}",
        f"--pipeline-parallel-size {layout.mesh.size(Axis.PIPELINE)}",
        f"--data-parallel-size {ranks.data}",
    ]
    if ranks.expert > 1:
        found.append("--enable-expert-parallel")
    found.append(f"--max-model-len {facts.sequence}")
    limit = batch_limit(layout, facts)
    if limit is not None:
        # The limit is a replica's; vLLM counts per data rank, and groups share a replica.
        found.append(f"--max-num-seqs {-(-limit // layout.attention_data)}")
    if KV_DTYPES[layout.kv_dtype] is not None:
        found.append(f"--kv-cache-dtype {KV_DTYPES[layout.kv_dtype]}")
    return found


def _check(facts: JobFacts, ranks: Ranks, layout: Layout) -> str:
    """Builds vLLM's own config of these degrees, which checks heads and devices; loads nothing."""
    arguments = (
        f"model={facts.hub_name!r}, tensor_parallel_size={ranks.tensor}, "
        f"pipeline_parallel_size={layout.mesh.size(Axis.PIPELINE)}, "
        f"data_parallel_size={ranks.data}, enable_expert_parallel={ranks.expert > 1}"
    )
    code = f"from vllm import EngineArgs; EngineArgs({arguments}).create_engine_config()"
    return f"python -c {shlex.quote(code)}"


def _notes(layout: Layout, facts: JobFacts, ranks: Ranks) -> tuple[str, ...]:
    notes = [
        f"Written for vLLM of {FRAMEWORK.since} or later; --gpu-memory-utilization and "
        "--max-num-batched-tokens bound what is left for the KV cache."
    ]
    notes.append(
        f"{facts.hub_name!r} stands for your checkpoint: a model id or path that vLLM can load."
    )
    if any(size.dcn > 1 for size in layout.mesh.root.values()):
        notes.append("Several hosts: add --nnodes and --node-rank, or start it under Ray.")
    if ranks.servers > 1:
        notes.append("Replicas are separate servers: vLLM's data ranks would share the experts.")
    return tuple(notes)


FRAMEWORK = Framework(
    name="vllm",
    title="vLLM",
    since="August 2026",
    source="vllm/config/parallel.py",
    write=write,
    constraints=Constraints(expert_divides=True),
)
