"""Builders of hand-made profiles, workloads and drafts, with values a person can check."""

from __future__ import annotations

from typing import Any

from prompts_agent.agents.planner.draft import Candidate, Draft
from prompts_agent.agents.report import Change, Predicted, Reason
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.model.catalog import find_model
from prompts_agent.trace.measure.facts import slug
from prompts_agent.trace.profile import (
    Breakdown,
    CollectiveKind,
    CollectiveUse,
    Fact,
    MeshAxisUse,
    OpUse,
    Profile,
    ProgramParameter,
    StepTimes,
)
from prompts_agent.workload.workload import Phase, Workload

GB = 10**9


def fact(fact_id: str, value: float | str, unit: str = "s") -> Fact:
    return Fact(id=fact_id, name=fact_id, value=value, unit=unit, source="hand-made")


def steps(period_s: float = 1.0, count: int = 10) -> StepTimes:
    return StepTimes(
        median_s=period_s,
        min_s=period_s,
        max_s=period_s,
        count=count,
        period_s=period_s,
        program="jit_train_step",
        derived_from="hand-made",
    )


def profile(**changes: Any) -> Profile:
    """A healthy job of 1 s steps on 16 chips of v5e; nothing is wrong with it."""
    values: dict[str, Any] = {
        "device_kind": "v5e",
        "device_label": "TPU v5 lite",
        "devices_in_trace": 4,
        "devices_in_job": 16,
        "hosts": 1,
        "step": steps(),
        "breakdown": Breakdown(
            compute_s=0.98,
            exposed_collective_s=0.01,
            host_transfer_s=0.0,
            input_s=0.0,
            idle_s=0.01,
        ),
        "mesh": (MeshAxisUse(name="fsdp", size=4), MeshAxisUse(name="tensor", size=4)),
        "hbm_peak_bytes": 8 * GB,
        "hbm_capacity_bytes": 16 * GB,
        "recompilations": 0,
    }
    values |= changes
    if "facts" not in changes:
        values["facts"] = facts_of(values)
    return Profile.model_validate(values)


def facts_of(values: dict[str, Any]) -> tuple[Fact, ...]:
    """The facts that the measurements give for these records."""
    facts = [fact("devices.job", values["devices_in_job"] or 0, "")]
    step: StepTimes | None = values["step"]
    if step is not None:
        facts.append(fact("step_time", step.median_s))
    for name, seconds in values["breakdown"].model_dump().items():
        if seconds is not None:
            facts.append(fact(f"breakdown.{name.removesuffix('_s')}", seconds))
    for use in values.get("collectives", ()):
        stem = f"collective.{use.kind.value}.{slug(use.axis or 'unknown')}"
        if use.exposed_s is not None:
            facts.append(fact(f"{stem}.exposed", use.exposed_s))
        if use.total_s is not None:
            facts.append(fact(f"{stem}.total", use.total_s))
    if values["hbm_peak_bytes"]:
        facts.append(fact("hbm.peak", values["hbm_peak_bytes"], "B"))
        facts.append(fact("hbm.capacity", values["hbm_capacity_bytes"], "B"))
    if values["recompilations"]:
        facts.append(fact("recompilations", values["recompilations"], ""))
    return tuple(facts)


def exposed(
    kind: CollectiveKind = CollectiveKind.ALL_REDUCE,
    axis: str | None = "tensor",
    exposed_s: float | None = 0.3,
) -> CollectiveUse:
    return CollectiveUse(
        kind=kind,
        axis=axis,
        group_size=4,
        bytes=10**6,
        count=64,
        total_s=exposed_s,
        exposed_s=exposed_s,
    )


def op(name: str = "fusion.1", total_s: float = 0.1, **changes: Any) -> OpUse:
    values: dict[str, Any] = {
        "name": name,
        "category": "fusion",
        "count": 1,
        "total_s": total_s,
        "share": total_s,
    }
    return OpUse.model_validate(values | changes)


def parameter(name: str, shape: tuple[int, ...], **changes: Any) -> ProgramParameter:
    values: dict[str, Any] = {"name": name, "dtype": "bf16", "local_shape": shape}
    return ProgramParameter.model_validate(values | changes)


def layout(**sizes: int) -> Layout:
    return Layout(mesh=Mesh.of(**sizes))


def workload(**changes: Any) -> Workload:
    """Llama 3.1 8B pre-training on 16 chips of v5e: 32 layers, 32 heads, 8 KV heads."""
    values: dict[str, Any] = {
        "name": "llama on 16 chips",
        "model": find_model("llama3.1-8b"),
        "topology": parse_topology("v5e:4x4"),
        "phase": Phase.PRETRAIN,
        "global_batch": 32,
        "sequence": 2048,
    }
    return Workload.model_validate(values | changes)


def candidate(
    shape: Layout, *, step_s: float = 1.0, hbm: int = 10 * GB, limit: int = 15 * GB, **terms: float
) -> Candidate:
    """A candidate whose upper memory estimate is a tenth above the estimate."""
    return Candidate(
        layout=shape,
        predicted=Predicted(
            step_time_s=step_s,
            low_s=0.9 * step_s,
            high_s=1.1 * step_s,
            hbm_bytes=hbm,
            hbm_limit_bytes=limit,
        ),
        hbm_high_bytes=hbm * 11 // 10,
        terms={name.replace("__", "."): value for name, value in terms.items()},
    )


def draft(
    of: Candidate,
    *,
    changes: tuple[Change, ...] = (),
    reasons: tuple[Reason, ...] = (),
    tradeoffs: tuple[str, ...] = (),
    figures: dict[str, str] | None = None,
) -> Draft:
    return Draft(
        candidate=of,
        changes=changes,
        reasons=reasons,
        tradeoffs=tradeoffs,
        figures=figures or {},
    )
