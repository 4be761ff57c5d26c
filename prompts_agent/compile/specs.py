"""Asks jax, with no device at hand, whether it accepts a layout's mesh and PartitionSpecs.

This is less than a compile (no memory, no schedule), so it never raises a proposal's rung; it finds
a spec that names an axis twice, or a dim that an axis does not divide, by jax's own rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prompts_agent.errors import LayoutError
from prompts_agent.layout.mesh import Mesh

__all__ = ["shard_shapes"]

Spec = Sequence[str | Sequence[str] | None]


def shard_shapes(
    mesh: Mesh, shapes: Mapping[str, tuple[int, ...]], specs: Mapping[str, Spec]
) -> dict[str, tuple[int, ...]]:
    """The per-device shape of each tensor as jax computes it.

    `shapes` are global, in elements; `specs` name one mesh axis, several, or None for each dim.
    Raises `LayoutError` where jax refuses a spec, with jax's reason.
    """
    from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

    sizes = {axis.value: size for axis, size in mesh.used().items()}
    abstract = AbstractMesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes)
    )
    found = {}
    for name, shape in shapes.items():
        entries = [_used(entry, sizes) for entry in specs[name]]
        _refuse_repeated(name, entries)
        try:
            make: Any = PartitionSpec
            sharding = NamedSharding(abstract, make(*entries))
            found[name] = tuple(sharding.shard_shape(shape))
        except ValueError as error:
            raise LayoutError(
                f"{name} of shape {shape} with spec {tuple(specs[name])} on {mesh}",
                rule=f"jax refuses it: {str(error).splitlines()[0]}",
                cure="Change the axis sizes so that they divide that dim.",
            ) from error
    return found


def _refuse_repeated(name: str, entries: Sequence[str | tuple[str, ...] | None]) -> None:
    # jax refuses this too, but by an exception that no public module names.
    axes = [a for entry in entries for a in ((entry,) if isinstance(entry, str) else entry or ())]
    twice = sorted({axis for axis in axes if axes.count(axis) > 1})
    if twice:
        raise LayoutError(
            f"{name} with spec {tuple(entries)}",
            rule=f"a spec names each axis at most once, and this names {', '.join(twice)} twice",
            cure="Shard one of the dims over another axis.",
        )


def _used(
    entry: str | Sequence[str] | None, sizes: Mapping[str, int]
) -> str | tuple[str, ...] | None:
    """A spec's entry without the axes of size one, which the mesh does not name."""
    if entry is None:
        return None
    names = (entry,) if isinstance(entry, str) else tuple(entry)
    kept = tuple(name for name in names if name in sizes)
    return None if not kept else kept[0] if len(kept) == 1 else kept
