"""Rules about the batch and the knobs: microbatches, pipeline schedules, serving."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from prompts_agent.layout.layout import Layout, PipelineSchedule, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.rule import BoolColumn, Rule, Words, factors, multiple, truth
from prompts_agent.layout.space import Space
from prompts_agent.layout.table import REMATS, SCHEDULES, LayoutTable

__all__ = ["BATCH_RULES"]

_INTERLEAVED = SCHEDULES.index(PipelineSchedule.INTERLEAVED)


def _all(table: LayoutTable) -> BoolColumn:
    return np.ones(len(table), dtype=np.bool_)


def _shards(table: LayoutTable, space: Space) -> BoolColumn:
    """Training: equal shards. Serving: requests come and go, but every shard has one to work on."""
    if space.training:
        return truth(space.global_batch % table.batch_shards == 0)
    return truth(table.batch_shards * table.attention_data <= space.global_batch)


def _shard_sizes(layout: Layout) -> dict[str, int]:
    """The axes that cut the batch."""
    axes = [Axis.DATA, Axis.FSDP] + ([] if layout.expert_divides else [Axis.EXPERT])
    return {axis.value: layout.mesh.size(axis) for axis in axes}


def _shards_words(layout: Layout, space: Space) -> Words:
    total, sizes = space.global_batch, _shard_sizes(layout)
    if space.training:
        # Where it comes out, the rule about the batch has the whole product.
        return multiple(f"{total} sequences", total, sizes)._replace(quiet=True)
    sizes["attention_data"] = layout.attention_data
    groups = math.prod(sizes.values())
    return Words(
        f"{total} sequences in flight for {factors(sizes)} = {groups} groups",
        f"Use at most {total} groups.",
        quiet=groups == 1,
    )


def _batch(table: LayoutTable, space: Space) -> BoolColumn:
    if not space.training:
        return _all(table)
    step = table.microbatch * table.gradient_accumulation * table.batch_shards
    return truth(step == space.global_batch)


def _batch_words(layout: Layout, space: Space) -> Words:
    shards, total = layout.batch_shards, space.global_batch
    if not space.training:
        return Words("serving has no optimizer step", "", quiet=True)
    step = layout.microbatch * layout.gradient_accumulation * shards
    per_shard = (
        f"Choose microbatch × gradient_accumulation = {total // shards}."
        if total % shards == 0
        else "Mend batch_shards first."
    )
    named = factors(
        _shard_sizes(layout)
        | {
            "microbatch": layout.microbatch,
            "gradient_accumulation": layout.gradient_accumulation,
        }
    ).strip("()")
    return Words(f"{named} = {step} sequences; the global batch is {total}", per_shard)


def _knobs(table: LayoutTable, space: Space) -> BoolColumn:
    """What the space allows of microbatches, accumulation, remat and chunks."""
    if not space.training:
        if not space.attention_data:
            return _all(table)
        return truth(np.isin(table.attention_data, space.attention_data))
    ok = np.isin(table.remat, [REMATS.index(r) for r in space.remat])
    if space.microbatches:
        ok &= np.isin(table.microbatch, space.microbatches)
    if space.max_gradient_accumulation is not None:
        ok &= table.gradient_accumulation <= space.max_gradient_accumulation
    if space.virtual_stages:
        ok &= (table.virtual_stages == 1) | np.isin(table.virtual_stages, space.virtual_stages)
    # Without a tensor axis there is nothing to be sequence-parallel over, whatever was asked for.
    free = table.size(Axis.TENSOR) == 1
    ok &= free | np.isin(table.sequence_parallel, space.sequence_parallel)
    return ok


def _knobs_words(layout: Layout, space: Space) -> Words:
    """The knobs that the space restricts, with what it allows."""
    told = _restricted_training(layout, space) if space.training else _restricted(layout, space)
    return Words(
        "; ".join(f"{knob} {value} of {allowed}" for knob, value, allowed in told)
        or "no knob is restricted",
        "Keep to the workload's constraints, or loosen them.",
        quiet=not told,
    )


def _restricted(layout: Layout, space: Space) -> list[tuple[str, object, str]]:
    allowed = space.attention_data
    return [("attention_data", layout.attention_data, _listed(allowed))] if allowed else []


def _restricted_training(layout: Layout, space: Space) -> list[tuple[str, object, str]]:
    told: list[tuple[str, object, str]] = []
    if not {Remat.NONE, Remat.MINIMAL, Remat.FULL} <= set(space.remat):
        told.append(("remat", layout.remat, _listed(space.remat)))
    if space.microbatches:
        told.append(("microbatch", layout.microbatch, _listed(space.microbatches)))
    if space.max_gradient_accumulation is not None:
        most = f"at most {space.max_gradient_accumulation}"
        told.append(("gradient_accumulation", layout.gradient_accumulation, most))
    if space.virtual_stages:
        told.append(("virtual_stages", layout.virtual_stages, _listed(space.virtual_stages)))
    if len(space.sequence_parallel) == 1 and layout.mesh.size(Axis.TENSOR) > 1:
        allowed = _switch(space.sequence_parallel[0])
        told.append(("sequence_parallel", _switch(layout.sequence_parallel), allowed))
    return told


def _listed(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _in_flight(table: LayoutTable, space: Space) -> BoolColumn:
    """A pipeline has at least as many microbatches as stages, in whole rounds when interleaved.

    MaxText: num_pipeline_microbatches is a multiple of the stages. Megatron's interleaved
    schedule: the number of microbatches is divisible by the pipeline's size.
    """
    if not space.training:
        return _all(table)
    stages = table.size(Axis.PIPELINE)
    enough = table.gradient_accumulation >= stages
    rounds = table.gradient_accumulation % stages == 0
    return truth((stages == 1) | (enough & ((table.schedule != _INTERLEAVED) | rounds)))


def _in_flight_words(layout: Layout, space: Space) -> Words:
    stages = layout.mesh.size(Axis.PIPELINE)
    if not space.training or stages == 1:
        return Words("no training pipeline, so no microbatches in flight", "", quiet=True)
    rounds = ", in whole rounds" if layout.schedule is PipelineSchedule.INTERLEAVED else ""
    return Words(
        f"{layout.gradient_accumulation} microbatches in flight for {stages} pipeline stages"
        f"{rounds}",
        f"Raise gradient_accumulation to a multiple of {stages} (a smaller microbatch), "
        "or use fewer stages.",
    )


def _interleaved(table: LayoutTable, _space: Space) -> BoolColumn:
    chunked = table.virtual_stages > 1
    interleaved = table.schedule == _INTERLEAVED
    return truth((chunked == interleaved) & (~chunked | (table.size(Axis.PIPELINE) > 1)))


def _interleaved_words(layout: Layout, _space: Space) -> Words:
    plain = layout.virtual_stages == 1 and layout.schedule is PipelineSchedule.ONE_F_ONE_B
    return Words(
        f"schedule {layout.schedule} with virtual_stages {layout.virtual_stages} and pipeline "
        f"{layout.mesh.size(Axis.PIPELINE)}",
        "interleaved goes with virtual_stages above 1 and pipeline above 1, and 1f1b with 1.",
        quiet=plain,
    )


def _attention_data(table: LayoutTable, space: Space) -> BoolColumn:
    if space.training:
        return truth(table.attention_data == 1)
    return truth(table.size(Axis.TENSOR) % table.attention_data == 0)


def _attention_data_words(layout: Layout, space: Space) -> Words:
    if space.training:
        return Words(
            f"attention_data {layout.attention_data} in training",
            "Attention-data groups exist in serving alone: use data.",
            quiet=True,
        )
    tensor = layout.mesh.size(Axis.TENSOR)
    return multiple(f"tensor {tensor}", tensor, {"attention_data": layout.attention_data})


def _serving(table: LayoutTable, space: Space) -> BoolColumn:
    if space.training:
        return truth(table.batch_limit == 0)
    single = (table.microbatch == 1) & (table.gradient_accumulation == 1)
    return truth(single & (table.virtual_stages == 1))


def _serving_words(layout: Layout, space: Space) -> Words:
    if space.training:
        text = f"batch_limit {layout.batch_limit or 'none'} in training"
        return Words(text, "Leave it out.", quiet=True)
    return Words(
        f"microbatch {layout.microbatch}, gradient_accumulation {layout.gradient_accumulation}, "
        f"virtual_stages {layout.virtual_stages} in serving",
        "Set all three to 1: they belong to the backward pass; batch_limit is serving's knob.",
        quiet=True,
    )


BATCH_RULES: tuple[Rule, ...] = (
    Rule(name="batch_shards", mask=_shards, words=_shards_words, early="training"),
    Rule(name="batch", mask=_batch, words=_batch_words),
    Rule(name="knob_constraints", mask=_knobs, words=_knobs_words),
    Rule(name="microbatches_in_flight", mask=_in_flight, words=_in_flight_words),
    Rule(name="interleaved", mask=_interleaved, words=_interleaved_words),
    Rule(name="attention_data", mask=_attention_data, words=_attention_data_words),
    Rule(name="serving_knobs", mask=_serving, words=_serving_words),
)
