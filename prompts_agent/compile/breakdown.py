"""Breakdown: which class of buffer each byte of an assignment belongs to.

Arguments are what the reference program says they are. A temporary is known by its shape: the shard
of a weight is a gradient or a cast, one layer's weight without its fsdp cut is gathered, a stack of
one activation a layer is saved for the backward pass, and tokens × vocab are logits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from prompts_agent.compile.assignment import Allocation, Value
from prompts_agent.compile.outcome import Buffers
from prompts_agent.record import Record
from prompts_agent.units import format_bytes

__all__ = ["Shapes", "buffers", "largest_values"]

Dims = tuple[int, ...]


class Shapes(Record):
    """One device's shapes of the program that was lowered; dims of size 1 do not count.

    `weights` are shards of whole stacks, `gathered` one layer's weights without their fsdp cut.
    """

    classes: tuple[str, ...]
    weights: tuple[Dims, ...]
    gathered: tuple[Dims, ...]
    cache: tuple[Dims, ...] = ()
    periods: tuple[int, ...]
    tokens: int
    vocab: tuple[int, ...]
    gradient_dtype: str | None
    """As XLA writes it (`f32`); None where there are no gradients."""


def buffers(allocations: Iterable[Allocation], live: set[str] | None, shapes: Shapes) -> Buffers:
    """Bytes by class; they sum to the need. Without `live`, temporaries are not told apart."""
    found: dict[str, int] = dict.fromkeys(Buffers.model_fields, 0)
    kinds = _Kinds(shapes)
    for allocation in allocations:
        if not allocation.on_device:
            continue
        if allocation.parameter is not None and allocation.parameter < len(shapes.classes):
            found[shapes.classes[allocation.parameter]] += allocation.size
            continue
        told = _told_apart(allocation, live, kinds) if live and allocation.temporary else {}
        for name, size in told.items():
            found[name] += size
        found["temporaries"] += allocation.size - sum(told.values())
    return Buffers(**found)


def largest_values(
    allocations: Iterable[Allocation], live: set[str] | None, shapes: Shapes, *, top: int = 5
) -> tuple[str, ...]:
    """The largest temporaries of the fullest moment, one line each."""
    kinds = _Kinds(shapes)
    held: dict[tuple[int, int], Value] = {}
    for number, allocation in enumerate(allocations):
        if allocation.on_device and allocation.temporary:
            for value in allocation.values:
                if live is None or value.name in live:
                    held.setdefault((number, value.offset), value)
    largest = sorted(held.values(), key=lambda value: -value.size)[:top]
    return tuple(
        f"{format_bytes(v.size)} {v.dtype}[{','.join(map(str, v.dims))}]: {kinds.of(v)}"
        for v in largest
    )


def _told_apart(allocation: Allocation, live: set[str] | None, kinds: _Kinds) -> Mapping[str, int]:
    """Bytes by class of the values that live at the peak; each byte counts once.

    Values that share a place (a loop's carry and its body's parameter) are one buffer.
    """
    spans = [
        (value.offset, value.offset + value.size, kinds.of(value))
        for value in allocation.values
        if live is not None and value.name in live
    ]
    found: dict[str, int] = {}
    reached = 0
    # Sure classes first where two begin together, so that an alias does not hide them.
    for start, stop, kind in sorted(spans, key=lambda s: (s[0], s[2] == "temporaries", -s[1])):
        fresh = stop - max(start, reached)
        if fresh > 0:
            found[kind] = found.get(kind, 0) + fresh
            reached = stop
    found.pop("temporaries", None)
    return found


class _Kinds:
    """Class of a value by its shape."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._weights = {_bare(dims) for dims in shapes.weights}
        self._gathered = {_bare(dims) for dims in shapes.gathered}
        self._cache = {_bare(dims) for dims in shapes.cache}

    def of(self, value: Value) -> str:
        """One of the fields of `Buffers`."""
        dims, shapes = _bare(value.dims), self._shapes
        if dims in self._cache:
            return "kv_cache"
        if dims in self._weights and len(dims) > 1:
            return "gradients" if value.dtype == shapes.gradient_dtype else "weights_in_use"
        if dims in self._gathered and len(dims) > 1:
            return "weights_in_use"
        rest = math.prod(value.dims)
        for vocab in shapes.vocab:
            if vocab in value.dims and rest // vocab >= shapes.tokens:
                return "logits"
        if shapes.gradient_dtype and len(dims) > 1 and value.dims[0] in shapes.periods:
            return "activations"
        return "temporaries"


def _bare(dims: Dims) -> Dims:
    """Sorted, without ones: a transposed or reshaped shard is the same shard."""
    return tuple(sorted(d for d in dims if d != 1))
