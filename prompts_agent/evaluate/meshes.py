"""Which rows of a table have the same degrees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import LayoutTable

__all__ = ["count_meshes", "degrees_of", "mesh_numbers"]

IntColumn = NDArray[np.int64]


def degrees_of(table: LayoutTable) -> IntColumn:
    """Degrees of every row, int64[n, 6], axes in the order of `Axis`."""
    return np.stack([table.size(axis) for axis in Axis], axis=1)


def mesh_numbers(degrees: IntColumn) -> IntColumn:
    """A number for each row, equal where all degrees are, int64[n].

    Much faster than `np.unique(degrees, axis=0)`, which sorts rows: a degree takes few values.
    """
    numbers = np.zeros(len(degrees), dtype=np.int64)
    for column in degrees.T:
        values, places = np.unique(column, return_inverse=True)
        numbers = numbers * max(1, len(values)) + places
    return numbers


def count_meshes(degrees: IntColumn) -> int:
    """How many different meshes there are."""
    return len(np.unique(mesh_numbers(degrees)))
