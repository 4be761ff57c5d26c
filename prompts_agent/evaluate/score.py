"""Score: what one workload says about the advisor and about every baseline beside it."""

from __future__ import annotations

from typing import Literal

from prompts_agent.hardware.catalog import find_chip
from prompts_agent.record import Record
from prompts_agent.workload.workload import Workload

__all__ = ["ADVISOR", "Choice", "Fact", "Method", "Point", "Score", "Tags", "Unrestricted", "tags"]

ADVISOR = "prompts"
"""The name that our own figures stand under, among `Score.methods`."""


class Method(Record):
    """How one way of choosing did. Shares are 0 to 1 and may be expectations; None: no meaning."""

    top_1: float | None = None
    """Adopted cases: the first choice is the adopted mesh. Sweeps: it ties with the best run."""
    top_3: float | None = None
    regret: float | None = None
    """Time of the first choice ÷ least time - 1."""
    regret_3: float | None = None
    """The same of the best among three choices."""
    tau: float | None = None


class Point(Record):
    """One measured figure and its estimates."""

    quantity: Literal["step time", "ttft", "tpot", "throughput"]
    measured: float
    estimated: float
    low: float | None = None
    high: float | None = None
    uncalibrated: float
    rule: float | None = None
    """What a rule of thumb says (`MFU_RULE`)."""
    near: bool
    """Within twice the best time of its workload: a layout that somebody would use."""


class Fact(Record):
    """Whether a layout fitted, and who would have said that it does not."""

    fitted: bool
    called_misfit: bool
    rule_called_misfit: bool


class Choice(Record):
    """A layout in words, and its estimate with what it is made of (terms above 1% of the whole)."""

    layout: str
    estimated_s: float
    """Seconds a step, or seconds an output token of the whole pool."""
    measured_s: float | None = None
    hbm_gb: float
    terms: dict[str, float]


class Unrestricted(Record):
    """Our first choice among all legal layouts, whether or not it was run."""

    layout: str
    measured: bool
    failed: bool
    """It was tried and gave no figure, for no stated cause, or ran out of memory."""
    regret: float | None = None
    tried_share: float
    """Meshes that were tried and gave a time ÷ legal meshes: how often chance picks one."""
    tried_failed: float
    """Share of what was tried that failed, for whatever cause."""


class Tags(Record):
    """What scores are grouped by."""

    chip: str
    platform: str
    phase: str
    family: str
    framework: str
    collection: str
    kind_of_model: Literal["dense", "experts"]
    devices: int


class Score(Record):
    """One workload. `kind`: `adopted` against an expert's layout, `sweep` against measured runs,
    `facts` where rows are no ranking.
    """

    kind: Literal["adopted", "sweep", "facts"]
    workload: str
    cluster: str
    tags: Tags
    methods: dict[str, Method]
    legal_meshes: int | None = None
    place: int | None = None
    """Of the adopted mesh among ours, 1 = first; None: not ranked, `unranked` says why."""
    place_with_ties: int | None = None
    """1 + meshes that are estimated more than a tie faster."""
    unranked: Literal["illegal", "does not fit"] | None = None
    abstained: bool = False
    """No layout of the workload was said to fit."""
    unrestricted: Unrestricted | None = None
    first: Choice | None = None
    truth: Choice | None = None
    points: tuple[Point, ...] = ()
    facts: tuple[Fact, ...] = ()
    layouts: int | None = None
    """Of a sweep: how many were ranked."""


def tags(workload: Workload, *, framework: str, collection: str) -> Tags:
    """The tags of a workload."""
    return Tags(
        chip=workload.topology.chip,
        platform=find_chip(workload.topology.chip).platform,
        phase=str(workload.phase),
        family=workload.model.family,
        framework=framework,
        collection=collection,
        kind_of_model="dense" if workload.model.moe is None else "experts",
        devices=workload.topology.devices,
    )
