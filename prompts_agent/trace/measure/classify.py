"""What a device is doing while an op runs, from the op's opcode."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from prompts_agent.trace.capture import Op
from prompts_agent.trace.hlo.collectives import collective_kind, split_opcode

__all__ = ["Activity", "activities", "activity", "is_collective"]

_CONTAINERS = {"while", "conditional", "call"}
_HOST_COPIES = {"memcpy-h2d", "memcpy-d2h", "outfeed"}
UNKNOWN_COLLECTIVE = "unknown"


class Activity(IntEnum):
    """One per op. ISSUE starts an asynchronous operation; CONTAINER spans other ops."""

    COMPUTE = 0
    COLLECTIVE = 1
    HOST_TRANSFER = 2
    INPUT = 3
    ISSUE = 4
    CONTAINER = 5
    UNUSED = 6


def is_collective(op: Op) -> bool:
    """Whether the op takes part in a collective: issues, waits or runs it."""
    return op.opcode == UNKNOWN_COLLECTIVE or collective_kind(op.opcode) is not None


def activity(op: Op, platform: str) -> Activity:
    """The activity of an op.

    On a TPU's op line `-start` only issues, and the time inside `-done` is the exposed wait. On a
    GPU's stream the kernel of a `-start` is the collective itself. A wait for a copy between HBM
    and on-chip memory is compute: no communication causes it.
    """
    base, role = split_opcode(op.opcode)
    if op.opcode == "unused":
        return Activity.UNUSED
    if base in _CONTAINERS:
        return Activity.CONTAINER
    if base == "infeed":
        return Activity.INPUT
    issues = role == "start" and platform != "gpu"
    if is_collective(op) and not (base in ("send", "recv") and op.is_host_transfer):
        return Activity.ISSUE if issues else Activity.COLLECTIVE
    if op.is_host_transfer or base in _HOST_COPIES:
        return Activity.ISSUE if issues else Activity.HOST_TRANSFER
    return Activity.COMPUTE


def activities(table: Sequence[Op], platform: str) -> NDArray[np.int8]:
    """The activity of each op of a table."""
    return np.array([activity(op, platform) for op in table], np.int8)
