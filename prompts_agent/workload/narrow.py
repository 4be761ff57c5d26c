"""Narrowing a workload's constraints to what a framework can express."""

from __future__ import annotations

from typing import TypeVar

from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Constraints

__all__ = ["narrow"]

T = TypeVar("T")


def narrow(own: Constraints, framework: Constraints, *, training: bool) -> Constraints:
    """`own`, with each field that `framework` sets.

    Choices are those that both allow, or the framework's where they have none in common; limits
    are the smaller ones; switches are the framework's. A server's axes stay its own.
    """
    update: dict[str, object] = {}
    for name in framework.model_fields_set - ({"axes"} if not training else set()):
        mine, theirs = getattr(own, name), getattr(framework, name)
        if isinstance(theirs, tuple):
            update[name] = _both(mine, theirs)
        elif isinstance(theirs, dict):
            update[name] = _smaller(mine, theirs)
        else:
            update[name] = theirs
    # Which fields are set is part of what a workload says, so unset ones stay unset.
    return Constraints(**(own.model_dump(exclude_unset=True) | update))


def _both(mine: tuple[T, ...], theirs: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(choice for choice in mine if choice in theirs) or theirs


def _smaller(mine: dict[Axis, int], theirs: dict[Axis, int]) -> dict[Axis, int]:
    return mine | {axis: min(limit, mine.get(axis, limit)) for axis, limit in theirs.items()}
