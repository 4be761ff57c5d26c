"""Collectives: how often, how many bytes, how long, and how much of that is exposed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import DeviceEvents, Events, Op
from prompts_agent.trace.hlo.collectives import collective_kind, split_opcode
from prompts_agent.trace.measure.classify import Activity, is_collective
from prompts_agent.trace.measure.intervals import Intervals, union
from prompts_agent.trace.profile import CollectiveKind, CollectiveUse
from prompts_agent.units import seconds_from_ps

__all__ = ["CollectiveSums", "sum_collectives", "uses"]

_TOP_NAMES = 4


@dataclass(slots=True)
class CollectiveSums:
    """One collective op over the steps of one device; a start and its done are one.

    `total_ps` is from start to done; `exposed_ps` the part that nothing hides.
    """

    op: Op
    count: int = 0
    total_ps: float = 0.0
    exposed_ps: float = 0.0


def sum_collectives(
    events: DeviceEvents, window: Events, kinds: NDArray[np.int8], platform: str
) -> list[CollectiveSums]:
    """Sums of each collective within `window`."""
    rows_of = _rows_by_op(events.table, window)
    if not rows_of:
        return []
    if platform == "gpu":
        return _kernel_sums(events, window, kinds, rows_of)
    return _op_line_sums(events, window, rows_of)


def _rows_by_op(table: list[Op], window: Events) -> dict[int, NDArray[np.int64]]:
    wanted = np.array([is_collective(op) for op in table], np.bool_)
    rows = np.flatnonzero(wanted[window.op]) if len(window) else np.zeros(0, np.int64)
    if not rows.shape[0]:
        return {}
    order = rows[np.argsort(window.op[rows], kind="stable")]
    ops, first = np.unique(window.op[order], return_index=True)
    return dict(zip(ops.tolist(), np.split(order, first[1:]), strict=True))


def _kernel_sums(
    events: DeviceEvents,
    window: Events,
    kinds: NDArray[np.int8],
    rows_of: dict[int, NDArray[np.int64]],
) -> list[CollectiveSums]:
    """GPU: the kernel is the collective; exposed is what no compute kernel overlaps."""
    working = kinds[window.op] == Activity.COMPUTE
    end = window.start_ps + window.duration_ps
    compute = union(window.start_ps[working], end[working])
    sums = []
    for op, rows in rows_of.items():
        start, until = window.start_ps[rows], end[rows]
        spans: Intervals = union(start, until)
        exposed = spans.length - spans.overlap(compute)
        total = float(window.duration_ps[rows].sum())
        sums.append(CollectiveSums(events.table[op], rows.shape[0], total, float(exposed)))
    return sums


def _op_line_sums(
    events: DeviceEvents, window: Events, rows_of: dict[int, NDArray[np.int64]]
) -> list[CollectiveSums]:
    """TPU: a done waits for the latest run of its start before it."""
    sums: dict[int, CollectiveSums] = {}
    by_name = {(op.name, op.program_id): k for k, op in enumerate(events.table)}
    dones = [k for k in rows_of if split_opcode(events.table[k].opcode)[1] == "done"]
    for op, rows in rows_of.items():
        if op in dones:
            continue
        role = split_opcode(events.table[op].opcode)[1]
        found = sums[op] = CollectiveSums(events.table[op], rows.shape[0])
        if role is None:
            found.total_ps = found.exposed_ps = float(window.duration_ps[rows].sum())
    for op in dones:
        done, rows = events.table[op], rows_of[op]
        start_op = by_name.get((_start_name(done), done.program_id))
        found = sums.setdefault(
            op if start_op not in sums or start_op is None else start_op,
            CollectiveSums(done, rows.shape[0]),
        )
        found.exposed_ps += float(window.duration_ps[rows].sum())
        found.total_ps += _start_to_done(window, rows, rows_of.get(start_op or -1))
    return list(sums.values())


_OPERAND = re.compile(r"-done\([^%]*(?:%[^%]*?)??%?([\w.\-]+-start[\w.\-]*)\)")


def _start_name(done: Op) -> str:
    """The start that a done waits for: its operand, else `x-start.3` for `x-done.3`."""
    operand = _OPERAND.search(done.text or "")
    return operand[1] if operand else done.name.replace("-done", "-start")


def _start_to_done(
    window: Events, dones: NDArray[np.int64], starts: NDArray[np.int64] | None
) -> float:
    end = window.start_ps[dones] + window.duration_ps[dones]
    if starts is None or not starts.shape[0]:
        return float(window.duration_ps[dones].sum())
    begun = window.start_ps[starts]
    index = np.searchsorted(begun, window.start_ps[dones], side="right") - 1
    known = index >= 0
    spans = np.where(known, end - begun[np.maximum(index, 0)], window.duration_ps[dones])
    return float(spans.sum())


# ---- to the profile


@dataclass(slots=True)
class _Group:
    count: float = 0.0
    bytes: int | None = 0
    total_ps: float = 0.0
    exposed_ps: float = 0.0
    group_size: int | None = None
    names: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def kind_of(op: Op) -> CollectiveKind:
    """The kind of a collective op."""
    return CollectiveKind(collective_kind(op.opcode) or "unknown")


def uses(
    sums: list[CollectiveSums],
    steps: float,
    axis_of: Callable[[Op], str | None],
    *,
    has_times: bool,
) -> tuple[CollectiveUse, ...]:
    """Collectives by kind and axis, per device and step; the most exposed first."""
    groups: dict[tuple[CollectiveKind, str | None], _Group] = defaultdict(_Group)
    for found in sums:
        group = groups[kind_of(found.op), axis_of(found.op)]
        group.count += found.count / steps
        group.total_ps += found.total_ps / steps
        group.exposed_ps += found.exposed_ps / steps
        moved = found.op.collective_bytes
        if moved is None or group.bytes is None:
            group.bytes = None
        else:
            group.bytes += round(moved * found.count / steps)
        group.names[found.op.name] += found.total_ps or (moved or 0) * found.count
        if found.op.group_size is not None:
            group.group_size = max(group.group_size or 0, found.op.group_size)
    ordered = sorted(
        groups.items(), key=lambda item: (-item[1].exposed_ps, -(item[1].bytes or 0), str(item[0]))
    )
    return tuple(_use(kind, axis, group, has_times) for (kind, axis), group in ordered)


def _use(kind: CollectiveKind, axis: str | None, group: _Group, has_times: bool) -> CollectiveUse:
    names = sorted(group.names, key=lambda name: (-group.names[name], name))[:_TOP_NAMES]
    return CollectiveUse(
        kind=kind,
        axis=axis,
        group_size=group.group_size,
        bytes=group.bytes,
        count=group.count,
        total_s=seconds_from_ps(group.total_ps) if has_times else None,
        exposed_s=seconds_from_ps(group.exposed_ps) if has_times else None,
        ops=tuple(names),
    )
