"""Framework: one way to write a layout down, and the checks that several of them share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from prompts_agent.agents.report import Config
from prompts_agent.emit.facts import JobFacts
from prompts_agent.errors import LayoutError
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Constraints

__all__ = [
    "Framework",
    "global_batch",
    "refuse_all_but_serving",
    "refuse_all_but_training",
    "refuse_attention_data",
    "refuse_axes",
    "refuse_phase",
    "refuse_placement",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """`since` is the version that the names were read from, `source` the file they stand in.

    `constraints` narrow the search of a plan for the framework to what it can express: the fields
    that are set there.
    """

    name: str
    title: str
    since: str
    source: str
    write: Callable[[Layout, JobFacts], Config]
    constraints: Constraints = field(default_factory=Constraints)


def global_batch(layout: Layout) -> int:
    """Sequences per optimizer step: microbatch × gradient accumulation × batch shards."""
    return layout.microbatch * layout.gradient_accumulation * layout.batch_shards


def refuse_phase(title: str, facts: JobFacts, *, training: bool) -> None:
    """Raise `LayoutError` where the framework trains and the job serves, or the other way."""
    if facts.phase.is_training is not training:
        raise LayoutError(
            f"phase {facts.phase} for {title}",
            rule=f"{title} {'trains' if training else 'serves'}",
            cure="Choose vllm or sglang to serve; jax, maxtext, megatron or torchtitan to train.",
        )


def refuse_all_but_training(title: str, layout: Layout, facts: JobFacts) -> None:
    """What every trainer refuses: a job that serves, and attention split over requests."""
    refuse_phase(title, facts, training=True)
    refuse_attention_data(title, layout)


def refuse_all_but_serving(
    title: str, layout: Layout, facts: JobFacts, kv_dtypes: Collection[str]
) -> None:
    """What every server refuses: a job that trains, axes that it lacks, an unknown KV dtype."""
    refuse_phase(title, facts, training=False)
    refuse_axes(title, layout, (Axis.FSDP,), "a server would gather the weights for each token")
    refuse_axes(
        title, layout, (Axis.CONTEXT,), "its prefill and decode context parallelism reuse ranks"
    )
    if layout.kv_dtype not in kv_dtypes:
        raise LayoutError(
            f"kv_dtype {layout.kv_dtype} for {title}",
            rule=f"its KV cache is one of {', '.join(kv_dtypes)}",
            cure="Plan with another kv_dtype.",
        )


def refuse_axes(title: str, layout: Layout, axes: Sequence[Axis], why: str) -> None:
    """Raise `LayoutError` where one of `axes` is larger than one."""
    for axis in axes:
        size = layout.mesh.size(axis)
        if size > 1:
            raise LayoutError(
                f"{axis} {size} for {title}",
                rule=f"{title} has no {axis} axis: {why}",
                cure=f"Plan with {axis} 1, or emit for a framework that has the axis.",
            )


def refuse_attention_data(title: str, layout: Layout) -> None:
    """Raise `LayoutError` where attention is split over requests inside the tensor axis."""
    if layout.attention_data > 1:
        raise LayoutError(
            f"attention_data {layout.attention_data} for {title}",
            rule=f"{title} keeps all tensor ranks of a replica on the same requests",
            cure="Plan with attention_data 1, or emit for vllm or sglang.",
        )


def refuse_placement(title: str, layout: Layout, inner_first: Sequence[Axis]) -> None:
    """Raise `LayoutError` for a split over domains that ranks filled in a fixed order cannot have.

    Ranks fill a domain from the inside: tensor 8 on nodes of 8 leaves every other axis to the
    network. Once an axis crosses domains, all axes outside it do so alone: (tensor 4, data ici 2)
    fills a node of 8, but tensor over two nodes with data inside each node does not exist. An
    expert axis that divides the others has no place of its own.
    """
    crossed: Axis | None = None
    for axis in inner_first:
        if axis is Axis.EXPERT and layout.expert_divides:
            continue
        size = layout.mesh[axis]
        if crossed is not None and size.ici > 1:
            order = " < ".join(a.value for a in inner_first)
            raise LayoutError(
                f"{crossed} crosses domains while {axis} {size.ici} lies inside one",
                rule=f"{title} numbers its ranks from the inside in the order {order}",
                cure=f"Keep {crossed} inside a domain, or let {axis} cross domains instead.",
            )
        if size.dcn > 1 and crossed is None:
            crossed = axis
