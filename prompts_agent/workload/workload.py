"""Workload: model × hardware × phase × batch × objective × constraints, and its baseline."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from prompts_agent.errors import WorkloadError
from prompts_agent.hardware.topology import Topology
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record
from prompts_agent.workload.framework import Framework

__all__ = [
    "Adopted",
    "Constraints",
    "Measured",
    "Objective",
    "Phase",
    "Precision",
    "Traffic",
    "Workload",
]


class Phase(StrEnum):
    """What the job does with the model."""

    PRETRAIN = "pretrain"
    POSTTRAIN = "posttrain"
    PREFILL = "prefill"
    DECODE = "decode"
    SERVE = "serve"
    """Prefill and decode mixed, by continuous batching."""

    @property
    def is_training(self) -> bool:
        """Has a backward pass and an optimizer."""
        return self in (Phase.PRETRAIN, Phase.POSTTRAIN)


class Objective(StrEnum):
    """What is better."""

    THROUGHPUT = "throughput"
    """Tokens per second of the whole job."""
    LATENCY = "latency"
    """Training: step time. Serving: TTFT and TPOT."""
    FIT = "fit"
    """Make it fit: the most free HBM."""
    COST = "cost"
    """Device-seconds per token."""


class Precision(Record):
    """dtypes of what a step holds and computes; the defaults are mixed-precision AdamW with an fp32
    master copy (16 bytes of weights and optimizer state a parameter, arXiv 1910.02054 §3.1).
    """

    compute: str = "bf16"
    weights: str = "fp32"
    """Training: the master weights. Serving: the weights as stored."""
    gradients: str = "bf16"
    optimizer_state: str = "fp32"
    optimizer_slots: int = Field(default=2, ge=0)
    """Tensors of a parameter's size in the optimizer: AdamW 2, Lion or momentum 1, SGD 0."""
    kv_cache: str = "bf16"


class Traffic(Record):
    """Serving load: `concurrency`, or global_batch, requests in flight at all times (closed loop),
    or `requests_per_s` that come whether or not others have finished (open loop); then global_batch
    is how many the servers may work on together.

    Raises `WorkloadError` where both are given.
    """

    input_tokens: int = Field(ge=1)
    output_tokens: int = Field(ge=1)
    concurrency: int | None = Field(default=None, ge=1)
    requests_per_s: float | None = Field(default=None, gt=0)
    ttft_limit_s: float | None = Field(default=None, gt=0)
    tpot_limit_s: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_loop(self) -> Self:
        if self.concurrency is not None and self.requests_per_s is not None:
            raise WorkloadError(
                f"traffic with concurrency {self.concurrency} and requests_per_s "
                f"{self.requests_per_s:g}",
                rule="requests come when others finish (concurrency) or at a rate",
                cure="Give one of the two.",
            )
        return self


class Constraints(Record):
    """What leaves no choice. Every field narrows the search; none widens it."""

    axes: tuple[Axis, ...] = tuple(Axis)
    """Axes that may be larger than one. Serving, where it is not given: `SERVING_AXES`."""
    dcn_axes: tuple[Axis, ...] = tuple(Axis)
    """Axes that may cross fast domains."""
    min_degree: dict[Axis, int] = Field(default_factory=dict)
    max_degree: dict[Axis, int] = Field(default_factory=dict)
    remat: tuple[Remat, ...] = ()
    """Empty: any in training."""
    sequence_parallel: tuple[bool, ...] = ()
    """Empty: both."""
    weights_over_context: bool = True
    expert_divides: bool = False
    zero_stage: int = Field(default=1, ge=0, le=1)
    """What data shards: 1 the optimizer's state, 0 nothing."""
    microbatches: tuple[int, ...] = ()
    virtual_stages: tuple[int, ...] = ()
    attention_data: tuple[int, ...] = ()
    kv_dtypes: tuple[Literal["bf16", "fp8", "int8"], ...] = ()
    """Serving: dtypes that the KV cache may have. Empty: that of `precision`, because fewer bits
    change what a model answers."""
    max_gradient_accumulation: int | None = Field(default=None, ge=1)


class Measured(Record):
    """What a run of one layout measured. `out_of_memory` rows have no times."""

    layout: Layout
    step_time_s: float | None = Field(default=None, gt=0)
    tokens_per_s: float | None = Field(default=None, gt=0)
    ttft_s: float | None = Field(default=None, gt=0)
    tpot_s: float | None = Field(default=None, gt=0)
    hbm_bytes: int | None = Field(default=None, gt=0)
    out_of_memory: bool = False
    comparable: bool = True
    """Everything but the layout was equal to the baseline's run."""
    open_knobs: tuple[str, ...] = ()
    """Knobs of `layout` that the source leaves open; the values there are assumed."""
    source: str


class Adopted(Record):
    """The layout that experts settled on, by degree of each axis."""

    degrees: dict[Axis, int]
    source: str
    speedup: float | None = None
    """Throughput against the baseline, as published."""
    layout: Layout | None = None
    """`degrees` with the knobs that the source states; those that it leaves open are assumed as a
    baseline's are. None: only degrees are known."""
    measured: Measured | None = None
    """What a run of `layout` measured."""


class Workload(Record):
    """One job. `assumptions` are sentences: everything here that no source and no trace says."""

    name: str
    model: ModelSpec
    topology: Topology
    phase: Phase
    global_batch: int = Field(ge=1)
    """Sequences per optimizer step; serving: sequences in flight over all replicas."""
    sequence: int = Field(ge=1)
    """Tokens per sequence; decode: the context that the cache holds."""
    objective: Objective = Objective.THROUGHPUT
    precision: Precision = Precision()
    framework: Framework | None = None
    """None: not known, or none of those that are known apart."""
    dropless: bool | None = None
    """Training: experts take every token that is sent to them, or only as many as they have room
    for. None: as the framework does unless told otherwise."""
    traffic: Traffic | None = None
    constraints: Constraints = Constraints()
    baseline: Layout | None = None
    baseline_measured: Measured | None = None
    adopted: Adopted | None = None
    alternatives: tuple[Measured, ...] = ()
    assumptions: tuple[str, ...] = ()
    source: str | None = None
