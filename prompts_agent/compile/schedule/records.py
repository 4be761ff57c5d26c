"""Schedule: one step of a compiled program, as numbers."""

from __future__ import annotations

from collections import defaultdict

from prompts_agent.record import Record

__all__ = ["CompiledCollective", "Loop", "Schedule", "Surprise"]


class CompiledCollective(Record):
    """Collectives of one kind over one axis, per device and step.

    `bytes` is the larger of what goes in and what comes out, summed over `count` runs. `total_s` is
    how long they have the links, `exposed_s` what the device waits for them.
    """

    kind: str
    axis: str | None
    group_size: int | None
    count: int
    bytes: int
    total_s: float
    exposed_s: float
    algorithm: str = ""
    ops: tuple[str, ...] = ()


class Loop(Record):
    """A loop of the program; `trips` is None where the program does not tell (taken as 1)."""

    name: str
    trips: int | None
    seconds: float


class Surprise(Record):
    """Something in the compiled program that the layout did not mean. `text` is a sentence or two;
    `seconds` of a step are at stake, 0 where it costs memory alone; `bytes` as the text says.
    """

    kind: str
    axis: str | None
    bytes: int
    seconds: float
    text: str


class Schedule(Record):
    """One step of a compiled program on one device, as a clock over its schedule gives it.

    `by_cycles_s` takes the compiler's own cycle counts for what has them (after code generation, on
    TPUs); `by_roofline_s` takes each op's FLOPs and HBM bytes. Transfers are the link model's in
    both; everything else here is of the one that `clock` names.
    """

    clock: str
    step_time_s: float
    by_cycles_s: float | None
    by_roofline_s: float
    expected_s: float | None = None
    """Of a training step: `by_roofline_s` times what public runs on this chip took over it (see
    `ClockRatio`). None for other programs and chips."""
    compute_s: float
    exposed_collectives_s: float
    exposed_host_s: float
    exposed_memory_s: float
    matmul_flops: float
    collectives: tuple[CompiledCollective, ...]
    loops: tuple[Loop, ...]
    generated: bool
    """Code was generated; without, a kernel that does not fit on-chip memory is not found."""
    surprises: tuple[Surprise, ...] = ()
    """What is not as the layout meant it, the costliest first; empty where no layout is known."""
    notes: tuple[str, ...] = ()

    def exposed_by_axis(self) -> dict[str, float]:
        """Exposed seconds of collectives by axis; over several axes under their joint name."""
        found: dict[str, float] = defaultdict(float)
        for use in self.collectives:
            found[use.axis or "unknown"] += use.exposed_s
        return dict(found)
