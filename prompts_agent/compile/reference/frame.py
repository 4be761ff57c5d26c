"""Frame: the mesh a reference program is cut over, and how its tensors are held to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from prompts_agent.compile.expert_axis import with_expert_axis
from prompts_agent.compile.reference.dtypes import dtype
from prompts_agent.compile.reference.untyped import abstract, held, partition
from prompts_agent.compile.reference.weights import Weight
from prompts_agent.compile.reference.zero import cut_further
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.specs import (
    ATTENTION_DATA,
    WEIGHT_CLASSES,
    Entry,
    Spec,
    mesh_axes,
    partition_specs,
)
from prompts_agent.workload.workload import Workload

__all__ = ["AXES", "Frame", "axis_sizes"]

AXES: tuple[str, ...] = (
    *(axis.value for axis in Axis if axis is not Axis.TENSOR), ATTENTION_DATA, Axis.TENSOR.value
)  # fmt: skip
"""Every axis is in the mesh, also one of size 1, so that code may name any of them."""


def axis_sizes(layout: Layout) -> dict[str, int]:
    """Size of each of `AXES`, outermost first."""
    used = mesh_axes(with_expert_axis(layout) or layout)
    return {name: used.get(name, 1) for name in AXES}


def _table_over_stages(specs: dict[str, Spec]) -> dict[str, Spec]:
    """The output table cut over the stages too.

    The first stage of a framework's pipeline holds the embedding and the last one the output table,
    so the fullest has one of them; here every stage has the embedding, and its part of the other.
    """
    (embed, vocab), (batch, sequence, wide) = specs["logits"], specs["activations.logits"]
    return {
        "logits": (embed, _with_stages(vocab)),
        "activations.logits": (batch, sequence, _with_stages(wide)),
    }


def _dense_whole(specs: dict[str, Spec]) -> dict[str, Spec]:
    """Specs of the dense weights without the expert axis."""

    def without(entry: Entry) -> Entry:
        names = () if entry is None else (entry,) if isinstance(entry, str) else entry
        left = tuple(name for name in names if name != Axis.EXPERT.value)
        return left if len(left) > 1 else left[0] if left else None

    dense = [name for name in WEIGHT_CLASSES if name in specs and not name.startswith("experts")]
    return {name: tuple(without(entry) for entry in specs[name]) for name in dense}


def _with_stages(entry: Entry) -> Entry:
    names = () if entry is None else (entry,) if isinstance(entry, str) else entry
    return (Axis.PIPELINE.value, *names)


@dataclass(frozen=True, slots=True)
class Frame:
    """A mesh, the specs over it, and the job whose program is built."""

    mesh: Mesh
    layout: Layout
    workload: Workload
    specs: dict[str, Spec]
    kernel: str
    """Attention: `splash` (TPU), `cudnn` (GPU) or `blocked` (anywhere)."""
    one_hot_lookup: bool
    """Token embeddings by a product with a one-hot matrix, which TPUs fuse, or by a gather."""
    dense_whole: bool = False
    """The expert axis holds copies of the dense weights."""

    @classmethod
    def of(
        cls, mesh: Mesh, layout: Layout, workload: Workload, *, kernel: str, one_hot: bool
    ) -> Frame:
        """Raises `LayoutError` where the layout has no partition specs.

        An expert axis that divides the data ranks becomes an axis of its own, on which dense
        weights are whole.
        """
        divides = layout.expert_divides and layout.mesh.size(Axis.EXPERT) > 1
        layout = with_expert_axis(layout) or layout
        training = workload.phase.is_training
        specs = partition_specs(layout, workload.model, training=training)
        if layout.mesh.size(Axis.PIPELINE) > 1:
            specs = specs | _table_over_stages(specs)
        if divides:
            specs = specs | _dense_whole(specs)
        return cls(mesh, layout, workload, specs, kernel, one_hot, divides)

    @property
    def compute(self) -> np.dtype:
        """Dtype of activations and of weights as matmuls read them.

        Where matmuls are of 8 or 4 bits, what lies between them has 16 (Transformer Engine, AQT);
        the casts around each matmul are not built.
        """
        kind = dtype(self.workload.precision.compute)
        return kind if kind.itemsize > 1 else dtype("bf16")

    def size(self, *axes: str) -> int:
        """Devices along these axes together."""
        return math.prod(self.mesh.shape[axis] for axis in axes)

    def axes(self, entry: Entry) -> tuple[str, ...]:
        """The names in a spec's entry."""
        return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)

    def spec(self, spec: Spec, shape: tuple[int, ...]) -> PartitionSpec:
        """`spec` without entries that do not divide their dim: one token has no sequence to cut."""
        kept: list[Entry] = []
        for size, entry in zip(shape, spec, strict=True):
            even = entry is not None and size % self.size(*self.axes(entry)) == 0
            kept.append(entry if even else None)
        return partition(*kept)

    def sharding(self, spec: Spec, shape: tuple[int, ...]) -> NamedSharding:
        """Where a tensor of `shape` lies."""
        return NamedSharding(self.mesh, self.spec(spec, shape))

    def hold(self, x: jax.Array, spec: Spec | str) -> jax.Array:
        """`x`, held to a spec or to a class of activations."""
        wanted = self.specs[spec] if isinstance(spec, str) else spec
        return held(x, self.sharding(wanted, x.shape))

    def abstract(self, shape: tuple[int, ...], spec: Spec, kind: np.dtype) -> jax.ShapeDtypeStruct:
        """An array that is not there."""
        return abstract(shape, kind, self.sharding(spec, shape))

    def master(self, weight: Weight) -> Weight:
        """A weight's master copy, and its optimizer state: cut over copies as well.

        ZeRO-1 (arXiv 1910.02054, section 5.1) cuts over `data`, and over `context` and `expert`
        where their ranks hold whole weights.
        """
        axes: tuple[str, ...] = ("data",) if self.layout.zero_stage else ()
        if self.layout.zero_stage and not self.layout.weights_over_context:
            axes += ("context",)
        if self.layout.zero_stage and self.dense_whole:
            axes += ("expert",)
        return cut_further(weight, axes, self.mesh.shape)
