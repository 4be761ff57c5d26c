"""Sizes of matmuls: of `dot`, and of the `convolution` that a TPU compiler turns most dots into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from prompts_agent.trace.hlo.shape import Shape

__all__ = ["DotDims", "convolution_dims", "dot_dims"]


@dataclass(frozen=True, slots=True)
class DotDims:
    """A matmul's sizes: `batch` matrices of m × k times k × n; `dtype` is the operands' type."""

    batch: int
    m: int
    n: int
    k: int
    dtype: str = ""

    @property
    def flops(self) -> int:
        """A multiply and an add for each of batch × m × n × k."""
        return 2 * self.batch * self.m * self.n * self.k


def dot_dims(
    lhs: Shape,
    rhs: Shape,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]],
) -> DotDims:
    """Sizes of a dot: m and n are what is neither contracted nor batch, of lhs and rhs.

    `bf16[8,128,256] · bf16[256,512]` over dims 2 and 0: batch 1, m 1024, n 512, k 256. Raises
    IndexError where a dim number is not a dim of its operand.
    """
    taken_lhs, taken_rhs = {*contracting[0], *batch[0]}, {*contracting[1], *batch[1]}
    return DotDims(
        batch=prod(lhs.dims[d] for d in batch[0]),
        m=prod(dim for d, dim in enumerate(lhs.dims) if d not in taken_lhs),
        n=prod(dim for d, dim in enumerate(rhs.dims) if d not in taken_rhs),
        k=prod(lhs.dims[d] for d in contracting[0]),
        dtype=lhs.dtype,
    )


def convolution_dims(
    lhs: Shape, kernel: Shape, result: Shape, output_feature: int
) -> DotDims | None:
    """Sizes of a convolution as a matmul: n output features, k weights for each of them.

    Exact where the window neither pads nor dilates, which the caller checks: then every output
    element takes k multiplies. `output_feature` is that dim of the kernel.
    """
    n = kernel.dims[output_feature]
    if not n or result.elements % n:
        return None
    return DotDims(1, result.elements // n, n, kernel.elements // n, lhs.dtype)
