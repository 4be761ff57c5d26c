"""Report: the answer, as data. Its JSON form is the published schema; renderers only lay it out.

The schema is versioned: a field is added under a new minor version, and removed or changed in
meaning only under a new major one.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prompts_agent.agents.finding import Finding
from prompts_agent.agents.opinion import Opinion
from prompts_agent.estimate.calibration import Constant
from prompts_agent.knowledge.evidence import Evidence
from prompts_agent.layout.layout import Layout
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record
from prompts_agent.trace.profile import Profile, TraceFile
from prompts_agent.workload.workload import Objective, Phase, Precision, Traffic

__all__ = [
    "SCHEMA_VERSION",
    "Abstention",
    "Baseline",
    "Change",
    "CompiledNeed",
    "Config",
    "Predicted",
    "Proposal",
    "RankFactors",
    "Reason",
    "Rejection",
    "Report",
    "Search",
    "Verdict",
    "WorkloadSummary",
]

SCHEMA_VERSION = "1.3"

Rung = Literal["estimated", "compiled", "measured"]


class Change(Record):
    """One thing that differs from today's layout: `axis` or a knob, from → to."""

    what: str
    before: str | None
    after: str
    direction: Literal["raise", "lower", "set"] = "set"


class Predicted(Record):
    """What the estimator expects of a layout. `low_s` to `high_s` is the 90% interval."""

    step_time_s: float | None
    low_s: float | None
    high_s: float | None
    hbm_bytes: int
    hbm_limit_bytes: int
    tokens_per_s: float | None = None
    speedup: float | None = None
    """Throughput ÷ today's; None where today's layout is not known."""
    speedup_low: float | None = None
    speedup_high: float | None = None
    ttft_low_s: float | None = None
    """Serving: the 90% interval of the time to the first token, the term `serving.ttft_s`."""
    ttft_high_s: float | None = None


class RankFactors(Record):
    """What the order is made by besides the objective: cost = objective × preference ÷ chance."""

    fit_probability: float
    """Chance that the memory need is within the limit, by the interval of the estimate."""
    preference: float = 1.0
    """What is learnt of the meshes that people adopt, as a factor on time; below 1 is liked."""


class Reason(Record):
    """A sentence with the facts, recipes and terms of the estimate it rests on; at least one."""

    text: str
    fact_ids: tuple[str, ...] = ()
    recipe_ids: tuple[str, ...] = ()
    term_ids: tuple[str, ...] = ()
    """Names in the proposal's `terms`."""


class CompiledNeed(Record):
    """What XLA's compiler for the topology said of a layout that it accepted.

    The program is a reference transformer, not the user's own: `differences` say how they may
    differ.
    """

    hbm_need_bytes: int
    hbm_limit_bytes: int | None
    """None: how much of the chip's memory a program can be given is not published."""
    estimated_bytes: int
    compiler: str
    program: str
    differences: tuple[str, ...] = ()
    step_time_s: float | None = None
    """Of the scheduled program, by the compiler's cycles or a roofline; after a whole compile."""
    exposed_by_axis_s: dict[str, float] = Field(default_factory=dict)
    """Seconds of a step that collectives over an axis, or `+`-joined axes, are waited for."""


class Verdict(Record):
    """What the critic found of a candidate, with every check it made, in words with values."""

    legal: bool
    fits: bool
    contradictions: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    """E.g. "product of axes 16 = 16 devices", "32 heads ÷ tensor 4 = 8"."""
    rung: Rung = "estimated"
    compiled: CompiledNeed | None = None


class Config(Record):
    """Text to paste into the user's framework, and a command that checks it."""

    framework: str
    language: str
    text: str
    check_command: str | None = None
    diff: str | None = None
    """What it changes in the config that the user gave, in that file's own keys."""
    notes: tuple[str, ...] = ()


class Proposal(Record):
    """A layout that the critic let through."""

    rank: int = Field(ge=1)
    layout: Layout
    changes: tuple[Change, ...]
    predicted: Predicted
    rung: Rung
    verdict: Verdict
    reasons: tuple[Reason, ...]
    tradeoffs: tuple[str, ...]
    terms: dict[str, float] = Field(default_factory=dict)
    """What the predicted step is made of, name → seconds or bytes."""
    factors: RankFactors | None = None
    config: Config | None = None


class Rejection(Record):
    """A candidate that the critic sent back, and why."""

    layout: Layout
    round: int
    reasons: tuple[str, ...]


class Abstention(Record):
    """Why no mesh is proposed: it is not sharding, the trace cannot tell, today's layout is
    the best one, or no layout passes (none is legal, or none can fit).
    """

    kind: Literal["not_sharding", "cannot_tell", "already_best", "nothing_fits"]
    text: str
    next_steps: tuple[str, ...] = ()


class Search(Record):
    """How much was searched. `wall_s` is left out of what must be equal between two runs: it is
    None in JSON unless timings were asked for.
    """

    legal: int
    fit: int
    considered: int
    wall_s: float | None = None


class WorkloadSummary(Record):
    """What was planned for."""

    name: str
    model: str
    hardware: str
    devices: int
    phase: Phase
    objective: Objective
    global_batch: int
    sequence: int
    dims: ModelSpec | None = None
    """The model's dims, so that a config can be written from the report alone."""
    precision: Precision | None = None
    traffic: Traffic | None = None
    assumptions: tuple[str, ...] = ()


class Baseline(Record):
    """Today's layout, as measured and as the estimator sees it."""

    layout: Layout
    measured_step_time_s: float | None = None
    predicted_step_time_s: float | None = None
    hbm_bytes: int | None = None
    terms: dict[str, float] = Field(default_factory=dict)
    scale: float | None = None
    """Measured ÷ estimated step of today's layout, which every predicted time is multiplied by."""
    source: str


class Report(Record):
    """The answer to one diagnosis or one plan."""

    schema_version: str = SCHEMA_VERSION
    tool_version: str
    trace: TraceFile | None = None
    """None for a plan without a trace."""
    profile: Profile | None = None
    workload: WorkloadSummary | None = None
    baseline: Baseline | None = None
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    abstained: Abstention | None = None
    search: Search | None = None
    caveats: tuple[str, ...] = ()
    other_objective: str | None = None
    """What would change under the other objective, a sentence."""
    separate_pools: str | None = None
    """Serving: what separate pools for prefill and decode would do, a sentence."""
    constants: dict[str, Constant] = Field(default_factory=dict)
    """The calibrated numbers behind the estimates, by name."""
    opinion: Opinion | None = None
    """What a language model added; None where none is configured."""
