"""Facts that follow from the profile's records, so that findings can cite what they compute."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from prompts_agent.agents.analyst.cite import period_s
from prompts_agent.agents.analyst.matmuls import tile, wasted_s
from prompts_agent.agents.analyst.pipeline import bubble_share
from prompts_agent.agents.analyst.roofline import ops_at
from prompts_agent.agents.analyst.weights import kv_split, replicated_bytes
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import Fact, Profile, Roofline
from prompts_agent.workload.workload import Workload

__all__ = ["with_derived_facts"]


def with_derived_facts(profile: Profile, workload: Workload | None) -> Profile:
    """The profile with `derived.*` facts appended; those that it already holds stay as they are."""
    known = {fact.id for fact in profile.facts}
    derived = [*_of_ops(profile), *_of_devices(profile), *_of_layout(profile, workload)]
    new = tuple(fact for fact in derived if fact.id not in known)
    return profile.model_copy(update={"facts": profile.facts + new})


def _of_ops(profile: Profile) -> Iterator[Fact]:
    if period_s(profile) is None:
        return
    bound = ops_at(profile, Roofline.HBM)
    if bound:
        yield Fact(
            id="derived.hbm_bound.time",
            name="time in ops nearer to the HBM ceiling",
            value=sum(op.total_s for op in bound),
            unit="s",
            source=f"sum over {len(bound)} of the largest ops",
        )
    side = tile(profile.device_kind)
    padding = sum(wasted_s(op, side) for op in profile.top_ops)
    if padding > 0:
        yield Fact(
            id="derived.matmul.padding_time",
            name="time that matmuls spend on padded tiles",
            value=padding,
            unit="s",
            source="matmul dims of the largest ops against the tile's side",
        )
        yield Fact(
            id="derived.matmul.tile",
            name="side of the matrix unit's tile",
            value=side,
            unit="",
            source=f"hardware: {profile.device_kind or 'unknown chip, 128 assumed'}",
        )


def _of_devices(profile: Profile) -> Iterator[Fact]:
    replicated = replicated_bytes(profile)
    if replicated:
        yield Fact(
            id="derived.replicated_bytes",
            name="bytes on one device that other devices hold as well",
            value=replicated,
            unit="B",
            source="parameters of the main program with replication above one",
        )
    if len(profile.stragglers) < 2 or profile.structure_only:
        return
    slowest = max(profile.stragglers, key=lambda host: (host.step_time_s, host.name))
    middle = median(host.step_time_s for host in profile.stragglers)
    yield Fact(
        id="derived.straggler.excess",
        name="slowest device's step less the median's",
        value=slowest.step_time_s - middle,
        unit="s",
        source=f"step times of {len(profile.stragglers)} devices",
    )
    yield Fact(
        id="derived.straggler.name",
        name="slowest device",
        value=slowest.name,
        unit="",
        source="step times of all measured devices",
    )


def _of_layout(profile: Profile, workload: Workload | None) -> Iterator[Fact]:
    split = kv_split(profile, workload)
    if split is not None:
        for fact_id, name, value in (
            ("derived.tensor", "size of today's tensor axis", split[0]),
            ("derived.kv_heads", "KV heads of the model", split[1]),
        ):
            yield Fact(
                id=fact_id, name=name, value=value, unit="", source="today's mesh and the model"
            )
    layout = workload.baseline if workload is not None else None
    if layout is not None and layout.mesh.size(Axis.PIPELINE) > 1:
        yield Fact(
            id="derived.pipeline.bubble.share",
            name="share of a step that a pipeline stage waits",
            value=bubble_share(layout),
            unit="1",
            source="today's stages, microbatches and schedule, arXiv 2104.04473 §2.2",
        )
