"""Frame: the mesh a reference program is cut over, and how its tensors are held to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from prompts_agent.compile.dropless import is_dropless
from prompts_agent.compile.expert_axis import finer_sizes, taken_ranks, without_expert_axis
from prompts_agent.compile.reference.dtypes import dtype
from prompts_agent.compile.reference.expert_ranks import ExpertRanks, expert_ranks, parts_in
from prompts_agent.compile.reference.untyped import abstract, held, partition
from prompts_agent.compile.reference.weights import Weight
from prompts_agent.compile.reference.zero import cut_further
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.specs import (
    ATTENTION_DATA,
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
    used = mesh_axes(without_expert_axis(layout))
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


def _finer(mesh: Mesh, taken: dict[str, int]) -> Mesh:
    """The same devices in the same order, with the axes that experts are cut over in part split."""
    sizes = finer_sizes(dict(mesh.shape), taken)
    grid = mesh.devices.reshape(tuple(sizes.values()))
    return Mesh(grid, tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))


def _in_finer(spec: Spec, mesh: Mesh) -> Spec:
    """A spec with the axes of a finer mesh in place of those that they are parts of."""

    def finer(entry: Entry) -> Entry:
        names = () if entry is None else (entry,) if isinstance(entry, str) else entry
        parts = tuple(part for name in names for part in parts_in(mesh, name))
        return parts if len(parts) > 1 else parts[0] if parts else None

    return tuple(finer(entry) for entry in spec)


def _with_stages(entry: Entry) -> Entry:
    names = () if entry is None else (entry,) if isinstance(entry, str) else entry
    return (Axis.PIPELINE.value, *names)


@dataclass(frozen=True, slots=True)
class Frame:
    """A mesh, the specs over it, and the job whose program is built."""

    mesh: Mesh
    """Of the layout's axes, or of parts of them where experts are cut over a part."""
    layout: Layout
    workload: Workload
    specs: dict[str, Spec]
    kernel: str
    """Attention: `splash` (TPU), `cudnn` (GPU) or `blocked` (anywhere)."""
    one_hot_lookup: bool
    """Token embeddings by a product with a one-hot matrix, which TPUs fuse, or by a gather."""
    dropless: bool
    """Experts take every token that is sent to them, or only as many as they have room for."""
    experts: ExpertRanks | None = None
    """Which ranks hold which experts; None for a dense model."""
    even: bool = True
    """Dropless buffers have room for even routing alone, not for any that may come."""

    @classmethod
    def of(
        cls,
        mesh: Mesh,
        layout: Layout,
        workload: Workload,
        *,
        kernel: str,
        one_hot: bool,
        even: bool = True,
    ) -> Frame:
        """Raises `LayoutError` where the layout has no partition specs.

        `mesh` has no axis for an expert axis that divides others; experts are cut over a finer mesh
        of the same devices.
        """
        taken, dense = taken_ranks(layout), without_expert_axis(layout)
        training = workload.phase.is_training
        specs = partition_specs(dense, workload.model, training=training)
        if dense.mesh.size(Axis.PIPELINE) > 1:
            specs = specs | _table_over_stages(specs)
        if taken:
            mesh = _finer(mesh, taken)
            specs = {name: _in_finer(spec, mesh) for name, spec in specs.items()}
        experts = None
        if workload.model.moe is not None:
            experts = expert_ranks(mesh, dense, specs, taken, training=training)
            specs = specs | experts.specs()
        return cls(
            mesh,
            dense,
            workload,
            specs,
            kernel,
            one_hot,
            is_dropless(workload, layout),
            experts,
            even,
        )

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
        return math.prod(self.mesh.shape[part] for axis in axes for part in self.parts(axis))

    def parts(self, axis: str) -> tuple[str, ...]:
        """The axes of the mesh that an axis of the layout is, outermost first."""
        return parts_in(self.mesh, axis)

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

        ZeRO-1 (arXiv 1910.02054, section 5.1) cuts over `data`, over `context` where its ranks hold
        whole weights, and experts over all ranks that hold them.
        """
        if not self.layout.zero_stage:
            return weight
        if weight.expert and self.experts is not None:
            return cut_further(weight, self.experts.copies, self.mesh.shape)
        axes = self.parts("data")
        if not self.layout.weights_over_context:
            axes += self.parts("context")
        return cut_further(weight, axes, self.mesh.shape)
