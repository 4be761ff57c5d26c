"""CompiledFit: what the compiler said about one layout, and how that is known."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from prompts_agent.compile.schedule.records import Schedule
from prompts_agent.record import Record

__all__ = ["Buffers", "CompiledFit", "Outcome"]

MARGINAL = 0.03
"""Needs this near the limit may fall on its other side with another version of the compiler."""


class Outcome(StrEnum):
    """How an attempt to compile ended."""

    FITS = "fits"
    DOES_NOT_FIT = "does not fit"
    REFUSED = "refused"
    """The compiler refuses the program for another reason than memory."""
    CRASHED = "crashed"
    """The compiler ended its own process (it does so on failed checks)."""
    TIMED_OUT = "timed out"
    OUT_OF_HOST_MEMORY = "out of host memory"
    NOT_BUILT = "not built"
    """The reference program does not express this layout or model."""
    NO_COMPILER = "no compiler"
    """The compiler for this chip is not installed, or there is none."""


class Buffers(Record):
    """Bytes of one device at the fullest moment, by what they hold; the sum is the need.

    `weights_in_use` are casts of weights and weights gathered from other devices; `temporaries` is
    all that no other class claims, with what fragmentation and alignment cost.
    """

    parameters: int = 0
    optimizer: int = 0
    gradients: int = 0
    weights_in_use: int = 0
    activations: int = 0
    logits: int = 0
    kv_cache: int = 0
    inputs: int = 0
    temporaries: int = 0

    def largest(self) -> tuple[str, int]:
        """The class that takes most, and its bytes."""
        return max(self.model_dump().items(), key=lambda item: item[1])

    @property
    def total(self) -> int:
        """All classes together."""
        return sum(self.model_dump().values())


class CompiledFit(Record):
    """The answer for one layout. None is unknown: a crash says nothing about memory.

    `hbm_need_bytes` is arguments and temporaries of one device as the compiler assigned them.
    `program` says what was compiled and `differences` how a user's own program may differ from it.
    `reason` and `advice` are sentences; `reason` is empty where the layout fits.
    """

    outcome: Outcome
    compiles: bool | None = None
    fits: bool | None = None
    hbm_need_bytes: int | None = None
    hbm_limit_bytes: int | None = None
    buffers: Buffers | None = None
    peak_values: tuple[str, ...] = ()
    """The largest values of the fullest moment, as `bytes dtype[dims]: where`."""
    schedule: Schedule | None = None
    """The scheduled program, where it was asked for and could be read."""
    reason: str = ""
    advice: tuple[str, ...] = ()
    program: str = ""
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    topology: str = ""
    flags: dict[str, str | bool | int] = Field(default_factory=dict)
    toolchain: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    knowledge: str | None = None
    """Where the compiler's figures of the chip come from."""
    wall_s: float | None = None
    cpu_s: float | None = None
    host_memory_bytes: int | None = None
    stopped_early: bool = False
    """The compiler was stopped once memory was assigned; code was not generated."""
    cached: bool = False
    key: str | None = None

    @property
    def margin(self) -> float | None:
        """Share of the limit that is left; negative where the need is above it."""
        if self.hbm_need_bytes is None or not self.hbm_limit_bytes:
            return None
        return 1.0 - self.hbm_need_bytes / self.hbm_limit_bytes

    @property
    def marginal(self) -> bool:
        """So near the limit that another version of the compiler may say otherwise."""
        return self.margin is not None and abs(self.margin) < MARGINAL
