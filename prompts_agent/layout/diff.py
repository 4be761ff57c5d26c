"""Differences between two layouts, as a report lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis, AxisSize
from prompts_agent.record import Record

__all__ = ["LayoutChange", "changes", "changes_of_degrees", "same_degrees"]

_KNOBS = tuple(name for name in Layout.model_fields if name != "mesh")


class LayoutChange(Record):
    """One axis or knob that differs. `before` is None where there is no layout to compare with."""

    what: str
    """An axis's name or a field of Layout."""
    before: str | None
    after: str
    direction: Literal["more", "less", "other"]
    """Of a number; "other" for words, switches, a new layout and a split that moved."""


def changes(before: Layout | None, after: Layout) -> tuple[LayoutChange, ...]:
    """Axes in the order of `Axis`, then knobs in the order of Layout's fields.

    Without a `before`, every axis larger than one and every knob that is not at its default.
    """
    if before is None:
        return _from_nothing(after)
    found = [
        _change(axis.value, before.mesh[axis], after.mesh[axis])
        for axis in Axis
        if before.mesh[axis] != after.mesh[axis]
    ]
    found += [
        _change(name, getattr(before, name), getattr(after, name))
        for name in _KNOBS
        if getattr(before, name) != getattr(after, name)
    ]
    return tuple(found)


def changes_of_degrees(before: Mapping[Axis, int], after: Layout) -> tuple[LayoutChange, ...]:
    """As `changes`, where of the layout before only the axes' degrees are known.

    Knobs have no `before`; as from nothing, those at their default are left out.
    """
    axes = [
        _change(axis.value, AxisSize(ici=before.get(axis, 1)), after.mesh[axis])
        for axis in Axis
        if before.get(axis, 1) != after.mesh.size(axis)
    ]
    names = set(Axis)
    return (*axes, *(change for change in _from_nothing(after) if change.what not in names))


def same_degrees(a: Layout, b: Layout) -> bool:
    """Every axis has the same size in both, wherever it lies and whatever the knobs are."""
    return all(a.mesh.size(axis) == b.mesh.size(axis) for axis in Axis)


def _from_nothing(after: Layout) -> tuple[LayoutChange, ...]:
    default = Layout(mesh=after.mesh)
    found = {axis.value: _text(after.mesh[axis]) for axis in after.mesh.used()}
    found |= {
        name: _text(getattr(after, name))
        for name in _KNOBS
        if getattr(after, name) != getattr(default, name)
    }
    return tuple(
        LayoutChange(what=what, before=None, after=text, direction="other")
        for what, text in found.items()
    )


def _change(what: str, before: object, after: object) -> LayoutChange:
    return LayoutChange(
        what=what, before=_text(before), after=_text(after), direction=_direction(before, after)
    )


def _direction(before: object, after: object) -> Literal["more", "less", "other"]:
    old, new = _number(before), _number(after)
    if old is None or new is None or old == new:
        return "other"
    return "more" if new > old else "less"


def _number(value: object) -> int | None:
    if isinstance(value, AxisSize):
        return value.size
    # bool is an int, but "sequence_parallel grew" says nothing.
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    """`16`, or `16 (ici 8 × dcn 2)` where an axis crosses domains; switches are on or off."""
    if isinstance(value, AxisSize):
        split = f" (ici {value.ici} × dcn {value.dcn})" if value.dcn > 1 else ""
        return f"{value.size}{split}"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)
