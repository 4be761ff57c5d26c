"""Profile: the facts measured from a trace, each with a value, a unit, a source and an id.

A value that the trace does not hold is None and named in `missing`; it is never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field, computed_field, model_validator

from prompts_agent.record import Record

__all__ = [
    "Breakdown",
    "CollectiveKind",
    "CollectiveUse",
    "Fact",
    "HostStep",
    "MeshAxisUse",
    "OpUse",
    "Profile",
    "ProgramParameter",
    "ProgramUse",
    "Roofline",
    "StepTimes",
    "TraceFile",
]


class CollectiveKind(StrEnum):
    """XLA's names; NCCL's are mapped onto them."""

    ALL_REDUCE = "all-reduce"
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_TO_ALL = "all-to-all"
    COLLECTIVE_PERMUTE = "collective-permute"
    COLLECTIVE_BROADCAST = "collective-broadcast"
    SEND_RECV = "send-recv"
    UNKNOWN = "unknown"


class Roofline(StrEnum):
    """Which ceiling an op is nearer to, by time at peak: FLOPs ÷ peak FLOP/s against bytes ÷ HBM
    bandwidth.
    """

    COMPUTE = "compute"
    HBM = "hbm"
    UNKNOWN = "unknown"


class Fact(Record):
    """One measured number or string.

    `source` says where it came from and how it was derived, e.g. "XLA Modules line of
    /device:TPU:0, median of 98 runs of jit_f".
    """

    id: str = Field(pattern=r"^[a-z][a-z0-9_.\-]*$")
    name: str
    value: float | int | str | bool
    unit: str
    source: str


class TraceFile(Record):
    """What was read: `sha256` of the bytes as they lie on disk; for several files, of their sorted
    digests.
    """

    sha256: str
    format: str
    files: int
    size_bytes: int
    caveats: tuple[str, ...] = ()


class StepTimes(Record):
    """Durations of the repeated device program, cut-off runs dropped."""

    median_s: float
    min_s: float
    max_s: float
    count: int
    period_s: float | None = None
    """Start to start, median; longer than `median_s` by the idle time between steps."""
    program: str
    derived_from: str


class Breakdown(Record):
    """Seconds of one step of the slowest measured device, by what the device was doing.

    The known parts add up to the step's period: `compute + exposed_collective + host_transfer +
    input + idle`. A part that the trace cannot tell is None, and the rest then does not add up.
    """

    compute_s: float | None = None
    exposed_collective_s: float | None = None
    host_transfer_s: float | None = None
    input_s: float | None = None
    idle_s: float | None = None


class CollectiveUse(Record):
    """One kind of collective over one mesh axis, per device and step.

    `axis` is the mesh axis's name where the program names it, "+"-joined where a collective spans
    several, `axis0`, `axis1`… (outermost first) where it was inferred from replica groups, None
    where unknown. `bytes` is the size of one device's larger operand or result, summed over
    `count`. `exposed_s` is the time inside `-done` waits plus synchronous collectives.
    """

    kind: CollectiveKind
    axis: str | None
    group_size: int | None
    bytes: int | None
    count: float
    total_s: float | None
    exposed_s: float | None
    ops: tuple[str, ...] = ()
    """Names of the largest, at most four."""


class OpUse(Record):
    """One op (HLO instruction or kernel), per device and step. Time is self time on the op line."""

    name: str
    category: str
    count: float
    total_s: float
    share: float
    """Of the step's period."""
    flops: float | None = None
    bytes: float | None = None
    roofline: Roofline = Roofline.UNKNOWN
    roofline_efficiency: float | None = None
    """Time at the nearer ceiling ÷ measured time, 0 to 1."""
    shape: str | None = None
    """Result type and shape as HLO writes it, e.g. `bf16[8,1024,4096]`."""
    dot_dims: tuple[int, int, int] | None = None
    """m, n, k of a matmul on one device, batch dims folded into m."""
    program: str | None = None
    tf_op: str | None = None


class MeshAxisUse(Record):
    """An axis of the mesh in use: named by the program, or inferred from replica groups."""

    name: str
    size: int


class ProgramParameter(Record):
    """A parameter of the main program with its per-device shape and how it is sharded.

    `name` is jax's argument path where the program keeps it (`params['layers']['mlp']['wi']`).
    `global_shape` and `tiles` come from the sharding annotation: tiles[i] devices along dim i.
    """

    name: str
    dtype: str
    local_shape: tuple[int, ...]
    global_shape: tuple[int, ...] | None = None
    tiles: tuple[int, ...] | None = None
    replication: int | None = None
    """On how many devices each shard is held; 1 = fully sharded."""


class ProgramUse(Record):
    """A program (HLO module) that ran or was compiled within the trace."""

    name: str
    program_id: str
    runs: int
    total_s: float | None
    devices: int | None = None
    has_hlo: bool = False


class HostStep(Record):
    """One host's (or one chip's) step time, to find stragglers."""

    name: str
    step_time_s: float
    exposed_collective_s: float | None = None


_COMPUTED = frozenset({"step_time_s", "steps"})


class Profile(Record):
    """Everything measured. `facts` is the flat list that findings refer to by id."""

    device_kind: str | None
    """A name of the hardware table (`v6e`, `mi300x`), "cpu", or None where it is unknown."""
    device_label: str
    """As the trace writes it."""
    structure_only: bool = False
    """True for CPU devices: shapes, mesh and collectives are real, times are not."""
    devices_in_trace: int
    devices_in_job: int | None
    hosts: int
    step: StepTimes | None
    breakdown: Breakdown
    mesh: tuple[MeshAxisUse, ...] = ()
    mesh_source: str | None = None
    collectives: tuple[CollectiveUse, ...] = ()
    top_ops: tuple[OpUse, ...] = ()
    programs: tuple[ProgramUse, ...] = ()
    parameters: tuple[ProgramParameter, ...] = ()
    """Of the main program, largest first."""
    hbm_peak_bytes: int | None = None
    hbm_capacity_bytes: int | None = None
    recompilations: int | None = None
    recompile_s: float | None = None
    stragglers: tuple[HostStep, ...] = ()
    """Every measured chip or host, slowest first; one entry says nothing about stragglers."""
    flops_per_step: float | None = None
    """Per device, from the program's matmuls or the trace's own counters."""
    facts: tuple[Fact, ...] = ()
    missing: tuple[str, ...] = ()
    """What the trace lacks and what it would have told, a sentence each."""

    @model_validator(mode="before")
    @classmethod
    def _computed_again(cls, value: object) -> object:
        """What JSON holds besides the fields is computed from them, not read."""
        if not isinstance(value, Mapping):
            return value
        return {name: item for name, item in value.items() if name not in _COMPUTED}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def step_time_s(self) -> float | None:
        """Median duration of a step, for a reader of the JSON."""
        return None if self.step is None else self.step.median_s

    @computed_field  # type: ignore[prop-decorator]
    @property
    def steps(self) -> int | None:
        """How many steps were measured."""
        return None if self.step is None else self.step.count

    def fact(self, fact_id: str) -> Fact | None:
        """The fact of that id, or None."""
        return next((fact for fact in self.facts if fact.id == fact_id), None)
