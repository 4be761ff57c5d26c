"""Forms: the shape of a workload file, as a person writes it, before names are looked up."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from prompts_agent.layout.layout import PipelineSchedule, Remat
from prompts_agent.layout.mesh import Axis, AxisSize
from prompts_agent.record import Record
from prompts_agent.workload.framework import Framework
from prompts_agent.workload.workload import Constraints, Objective, Phase, Precision, Traffic

__all__ = ["AdoptedForm", "KnobsForm", "LayoutForm", "MeasuredForm", "WorkloadForm"]


class MeasuredForm(Record):
    """`Measured` without its layout, which stands around it. `source` defaults to the file's."""

    step_time_s: float | None = Field(default=None, gt=0)
    tokens_per_s: float | None = Field(default=None, gt=0)
    ttft_s: float | None = Field(default=None, gt=0)
    tpot_s: float | None = Field(default=None, gt=0)
    hbm_bytes: int | None = Field(default=None, gt=0)
    out_of_memory: bool = False
    comparable: bool = True
    source: str | None = None


class KnobsForm(Record):
    """What a layout is besides its mesh, as far as it is known. Unknown knobs are assumed aloud."""

    expert_divides: bool | None = None
    microbatch: int | None = Field(default=None, ge=1)
    gradient_accumulation: int | None = Field(default=None, ge=1)
    remat: Remat | None = None
    zero_stage: int | None = Field(default=None, ge=0, le=1)
    sequence_parallel: bool | None = None
    weights_over_context: bool | None = None
    schedule: PipelineSchedule | None = None
    virtual_stages: int | None = Field(default=None, ge=1)
    attention_data: int | None = Field(default=None, ge=1)
    batch_limit: int | None = Field(default=None, ge=1)
    kv_dtype: str | None = None
    measured: MeasuredForm | None = None

    def knobs(self) -> dict[str, object]:
        """The knobs that are given, by name."""
        names = set(KnobsForm.model_fields) - {"measured"}
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class LayoutForm(KnobsForm):
    """A mesh, its knobs, and what was measured."""

    mesh: dict[Axis, PositiveInt | AxisSize]
    out_of_memory: bool = False
    """Short for `measured: {out_of_memory: true}`."""


class AdoptedForm(KnobsForm):
    """See `Adopted`. `source` defaults to the file's."""

    degrees: dict[Axis, PositiveInt | AxisSize]
    source: str | None = None
    speedup: float | None = Field(default=None, gt=0)


class WorkloadForm(Record):
    """A whole file but for a model that is written out, which is read apart as a ModelSpec."""

    name: str | None = None
    model: str
    hardware: str
    phase: Phase
    global_batch: int = Field(ge=1)
    sequence: int = Field(ge=1)
    objective: Objective = Objective.THROUGHPUT
    precision: Precision = Precision()
    framework: Framework | None = None
    dropless: bool | None = None
    traffic: Traffic | None = None
    constraints: Constraints = Constraints()
    baseline: LayoutForm | None = None
    adopted: AdoptedForm | None = None
    alternatives: tuple[LayoutForm, ...] = ()
    assumptions: tuple[str, ...] = ()
    source: str | None = None
