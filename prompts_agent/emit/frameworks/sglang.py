"""SGLang: a `sglang serve` command.

Names as of sglang 0.5.23 (`sglang/srt/arg_groups/fields/parallel.py`). `--tp-size` counts all ranks
of a replica; `--attn-dp-size` groups them for attention, `--ep-size` for the experts. The older
`--dp-size N --enable-dp-attention` meant the former and goes away after 2026; `--dp-size` is
replicas now, and refuses to stand beside `--attn-dp-size`.
"""

from __future__ import annotations

from prompts_agent.agents.report import Config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.emit.framework import Framework, refuse_all_but_serving, refuse_placement
from prompts_agent.emit.server import Ranks, batch_limit, command_text, replicas_that_share
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Constraints

__all__ = ["FRAMEWORK"]

KV_DTYPES = {"bf16": None, "fp8": "fp8_e4m3"}
RANK_ORDER = (Axis.TENSOR, Axis.EXPERT, Axis.PIPELINE, Axis.DATA)


def write(layout: Layout, facts: JobFacts) -> Config:
    """A command a server. Raises `LayoutError` for what SGLang cannot express."""
    refuse_all_but_serving("SGLang", layout, facts, KV_DTYPES)
    if facts.platform == "tpu":
        raise LayoutError(
            f"{facts.topology} for SGLang",
            rule="these flags are of the server for GPUs",
            cure="Emit for vllm, which has a TPU backend.",
        )
    refuse_placement("SGLang", layout, RANK_ORDER)
    ranks = _ranks(layout)
    command = ["sglang", "serve", "--model-path", facts.hub_name]
    return Config(
        framework=FRAMEWORK.name,
        language="bash",
        text=command_text(layout, command, _arguments(layout, facts, ranks), servers=ranks.servers),
        notes=_notes(layout, facts, ranks),
    )


def _ranks(layout: Layout) -> Ranks:
    """Our axes in SGLang's words.

    An expert axis that is a factor of the mesh holds ranks that serve other requests in attention
    and share the experts, which is `--attn-dp-size`: expert 4 × tensor 2 is `--tp-size 8
    --attn-dp-size 4 --ep-size 4`, with 2 tensor ranks in attention and in each expert. So are data
    ranks whose experts a dividing axis spreads over them all.
    """
    mesh = layout.mesh
    tensor, data, expert = (mesh.size(a) for a in (Axis.TENSOR, Axis.DATA, Axis.EXPERT))
    share = replicas_that_share(layout)
    factor = 1 if layout.expert_divides else expert
    groups, width = layout.attention_data * share * factor, tensor * share * factor
    if width % expert:
        raise LayoutError(
            f"expert {expert} with tensor {tensor}, for SGLang",
            rule="its experts are divided over the ranks of one server",
            cure=f"Plan with expert among the divisors of {tensor}.",
        )
    replicas = data // share
    # A replica beside attention groups is a server of its own: SGLang refuses both in one.
    apart = groups > 1
    return Ranks(
        tensor=width,
        data=1 if apart else replicas,
        attention_data=groups,
        expert=expert,
        servers=replicas if apart else 1,
    )


def _arguments(layout: Layout, facts: JobFacts, ranks: Ranks) -> list[str]:
    found = [
        f"--tp-size {ranks.tensor}",
        f"--pp-size {layout.mesh.size(Axis.PIPELINE)}",
        f"--dp-size {ranks.data}",
        f"--attn-dp-size {ranks.attention_data}",
        f"--ep-size {ranks.expert}",
        f"--context-length {facts.sequence}",
    ]
    limit = batch_limit(layout, facts)
    if limit is not None:
        # Counted for all attention groups of a server; a group may be a replica of the layout.
        replicas = ranks.attention_data // layout.attention_data
        found.append(f"--max-running-requests {limit * replicas}")
    if KV_DTYPES[layout.kv_dtype] is not None:
        found.append(f"--kv-cache-dtype {KV_DTYPES[layout.kv_dtype]}")
    return found


def _notes(layout: Layout, facts: JobFacts, ranks: Ranks) -> tuple[str, ...]:
    notes = [
        f"Written for SGLang {FRAMEWORK.since} or later; "
        "--mem-fraction-static and --chunked-prefill-size bound what is left for the KV cache.",
        f"{facts.hub_name!r} stands for your checkpoint: a model id or path that SGLang can load.",
        "SGLang has no command that checks these flags without a GPU.",
    ]
    if ranks.attention_data > 1:
        notes.append("Before 0.5.23 attention groups were --dp-size N --enable-dp-attention.")
    if any(size.dcn > 1 for size in layout.mesh.root.values()):
        notes.append("Several hosts: add --nnodes, --node-rank and --dist-init-addr.")
    return tuple(notes)


FRAMEWORK = Framework(
    name="sglang",
    title="SGLang",
    since="0.5.23",
    source="sglang/srt/arg_groups/fields/parallel.py",
    write=write,
    constraints=Constraints(expert_divides=True),
)
