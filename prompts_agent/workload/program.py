"""ProgramShapes: what a traced program says about the job without a word from its author."""

from __future__ import annotations

import math

from prompts_agent.record import Record

__all__ = ["AxisInUse", "ProgramShapes", "TensorShape"]

_INTEGERS = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "pred", "int", "uint", "bool")


class TensorShape(Record):
    """A parameter or an input of the program.

    `dtype` is XLA's name (`bf16`, `f32`, `s32`). `tiles[i]` devices cut dim i; `replication`
    devices hold each shard. None where the program does not say.
    """

    name: str
    dtype: str
    local_shape: tuple[int, ...]
    global_shape: tuple[int, ...] | None = None
    tiles: tuple[int, ...] | None = None
    replication: int | None = None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The global shape, where it is given or follows from the tiles."""
        if self.global_shape is not None:
            return self.global_shape
        if self.tiles is None or len(self.tiles) != len(self.local_shape):
            return None
        return tuple(n * t for n, t in zip(self.local_shape, self.tiles, strict=True))

    @property
    def ways(self) -> int | None:
        """In how many different shards it is cut."""
        return None if self.tiles is None else math.prod(self.tiles)

    @property
    def is_integer(self) -> bool:
        """Token ids, positions, masks; quantised weights too, which have a fraction beside them."""
        return self.dtype.lower().startswith(_INTEGERS)


class AxisInUse(Record):
    """An axis of the program's mesh under its own name."""

    name: str
    size: int


class ProgramShapes(Record):
    """The main program of a trace. None is unknown."""

    name: str
    parameters: tuple[TensorShape, ...] = ()
    """Weights, optimizer state and caches."""
    inputs: tuple[TensorShape, ...] = ()
    """Integer tensors of batch × sequence; in decoding, of batch alone or batch × 1."""
    mesh: tuple[AxisInUse, ...] = ()
    has_backward: bool | None = None
    has_optimizer_state: bool | None = None
    device_kind: str | None = None
    """A name of the hardware table; None for CPUs and unknown devices."""
    devices: int | None = None
