"""vLLM on TPU: a `vllm serve` command with tpu-inference's sharding strategy.

Names as of tpu-inference 0.32.0 (`tpu_inference/layers/common/sharding.py`). Its mesh is data ×
attn_dp × attn_dp_expert × expert × model. The experts lie on all ranks of a replica with
`--enable-expert-parallel`, and are cut by them without it.
"""

from __future__ import annotations

import json
import shlex

from prompts_agent.agents.report import Config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import Framework, refuse_all_but_serving
from prompts_agent.emit.server import Ranks, batch_limit, command_text, replicas_that_share
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Constraints

__all__ = ["FRAMEWORK", "write"]

KV_DTYPES = {"bf16": None, "fp8": "fp8"}


def write(layout: Layout, facts: JobFacts) -> Config:
    """A command. Raises `LayoutError` for what tpu-inference cannot express."""
    refuse_all_but_serving("vLLM on TPU", layout, facts, KV_DTYPES)
    if facts.platform == "gpu":
        raise LayoutError(
            f"{facts.topology} for vLLM on TPU",
            rule="the sharding strategy is of its TPU backend",
            cure="Emit for vllm.",
        )
    for axis, size in layout.mesh.root.items():
        if size.dcn > 1 and axis is not Axis.DATA:
            raise LayoutError(
                f"{axis} over {size.dcn} slices, for vLLM on TPU",
                rule="one server's mesh lies within a slice",
                cure=f"Plan with data across slices and {axis} within one.",
            )
    ranks = _ranks(layout)
    return Config(
        framework=FRAMEWORK.name,
        language="bash",
        text=command_text(
            layout,
            ["vllm", "serve", facts.hub_name],
            _arguments(layout, facts, ranks),
            servers=ranks.servers,
            environment=["NEW_MODEL_DESIGN=1"] if ranks.attention_data > 1 else [],
        ),
        notes=_notes(facts),
    )


def _ranks(layout: Layout) -> Ranks:
    mesh = layout.mesh
    tensor, expert = mesh.size(Axis.TENSOR), mesh.size(Axis.EXPERT)
    data, servers = mesh[Axis.DATA].ici, mesh[Axis.DATA].dcn
    share = replicas_that_share(layout)
    if expert == 1 or (layout.expert_divides and expert == tensor * share and data % share == 0):
        return Ranks(
            tensor=tensor * share,
            data=data // share,
            attention_data=layout.attention_data * share,
            expert=expert,
            servers=servers,
        )
    if layout.expert_divides or tensor > 1:
        raise LayoutError(
            f"expert {expert} with tensor {tensor}, for vLLM on TPU",
            rule="its experts lie on all ranks of a replica, or are cut by all of them",
            cure=f"Plan with expert_divides true and expert 1 or {tensor}.",
        )
    if layout.attention_data > 1:
        raise LayoutError(
            f"attention_data {layout.attention_data} with tensor 1, for vLLM on TPU",
            rule="attention groups are groups of the tensor ranks",
            cure="Plan with attention_data 1.",
        )
    # The axis serves other requests on each rank in attention and shares the experts: that is
    # tensor ranks in as many attention groups.
    return Ranks(tensor=expert, data=data, attention_data=expert, expert=expert, servers=servers)


def _arguments(layout: Layout, facts: JobFacts, ranks: Ranks) -> list[str]:
    found = [
        f"--tensor-parallel-size {ranks.tensor}",
        f"--pipeline-parallel-size {layout.mesh.size(Axis.PIPELINE)}",
        f"--data-parallel-size {ranks.data}",
    ]
    if ranks.expert > 1:
        found.append("--enable-expert-parallel")
    if ranks.attention_data > 1:
        strategy = {"enable_dp_attention": True, "attn_dp_size": ranks.attention_data}
        config = json.dumps({"sharding": {"sharding_strategy": strategy}})
        found.append(f"--additional-config {shlex.quote(config)}")
    found.append(f"--max-model-len {facts.sequence}")
    limit = batch_limit(layout, facts)
    if limit is not None:
        # The limit is a replica's; vLLM counts per data rank, and groups share a replica.
        found.append(f"--max-num-seqs {-(-limit // layout.attention_data)}")
    if KV_DTYPES[layout.kv_dtype] is not None:
        found.append(f"--kv-cache-dtype {KV_DTYPES[layout.kv_dtype]}")
    return found


def _notes(facts: JobFacts) -> tuple[str, ...]:
    return (
        f"Written for tpu-inference {FRAMEWORK.since} or later; --gpu-memory-utilization and "
        "--max-num-batched-tokens bound what is left for the KV cache.",
        f"{facts.hub_name!r} stands for your checkpoint: a model id or path that vLLM can load.",
        "vLLM has no command that checks a TPU config without a TPU.",
    )


FRAMEWORK = Framework(
    name="vllm-tpu",
    title="vLLM on TPU",
    since="0.32.0",
    source="tpu_inference/layers/common/sharding.py",
    write=write,
    constraints=Constraints(expert_divides=True),
)
