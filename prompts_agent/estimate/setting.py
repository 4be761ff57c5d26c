"""Setting: everything that the formulas of one estimate look at, gathered once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prompts_agent.estimate.architecture import Architecture, architecture
from prompts_agent.estimate.calibration import Calibration, Constants, Stack
from prompts_agent.estimate.links import Links, links
from prompts_agent.estimate.shared_replicas import joined_replicas
from prompts_agent.estimate.sizes import Sizes, dtype_bytes, sizes
from prompts_agent.estimate.stack import stack_of
from prompts_agent.hardware.catalog import find_chip
from prompts_agent.hardware.chip import Chip
from prompts_agent.layout.layout import Remat
from prompts_agent.layout.table import REMATS, LayoutTable
from prompts_agent.workload.workload import Workload

__all__ = ["Setting", "constants_key", "setting", "setting_with"]

FloatColumn = NDArray[np.float64]
BoolColumn = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The table and the workload, and what follows from them. Columns have the table's length.

    In serving the table is that of `joined_replicas`.
    """

    table: LayoutTable
    workload: Workload
    arch: Architecture
    sizes: Sizes
    chip: Chip
    links: Links
    constants: Constants

    @property
    def element_bytes(self) -> float:
        """Bytes of one activation, or of one weight as it travels in training.

        Matmuls of 8 or 4 bits cast their inputs on the way: what lies between them, and what
        collectives carry, stays at 16 bits (Transformer Engine, AQT).
        """
        return max(dtype_bytes(self.workload.precision.compute), 2.0)

    @property
    def hbm_bytes_per_s(self) -> float:
        """HBM bandwidth that kernels reach."""
        return self.chip.hbm_bandwidth_bytes_per_s * self.constants.hbm_efficiency

    @property
    def peak_flops_per_s(self) -> float:
        """Peak of the matrix unit for the compute dtype, or for bf16 where that is all there is."""
        peaks = self.chip.peak_flops
        for name in (self.workload.precision.compute, "bf16", "fp16", "fp32"):
            if name in peaks:
                return float(peaks[name])
        return float(max(peaks.values()))

    @property
    def wide_flops_per_s(self) -> float:
        """Peak for what stays at 16 bits where matmuls are narrower: attention and logits."""
        peaks = self.chip.peak_flops
        if dtype_bytes(self.workload.precision.compute) >= 2.0:
            return self.peak_flops_per_s
        return float(peaks.get("bf16") or peaks.get("fp16") or self.peak_flops_per_s)

    @property
    def serving_dtype(self) -> str:
        """What a server's matmuls multiply: on GPUs the weights' dtype where the chip has a rate
        for it (8- and 4-bit weights are there for their rate too), else the compute dtype.
        """
        precision = self.workload.precision
        narrower = dtype_bytes(precision.weights) < dtype_bytes(precision.compute)
        has_rate = self.chip.platform == "gpu" and precision.weights in self.chip.peak_flops
        return precision.weights if narrower and has_rate else precision.compute

    @property
    def serving_peak_flops_per_s(self) -> float:
        """Peak of the matrix unit for `serving_dtype`."""
        return float(self.chip.peak_flops.get(self.serving_dtype, self.peak_flops_per_s))

    @property
    def narrow_share(self) -> float:
        """`low_precision_efficiency` where matmuls are of 8 or 4 bits, else 1."""
        narrow = dtype_bytes(self.workload.precision.compute) < 2.0
        return self.constants.low_precision_efficiency if narrow else 1.0

    @property
    def compiled(self) -> bool:
        """XLA compiles the step: TPUs, and GPUs whose workload names no other software."""
        return self.chip.platform == "tpu" or self.stack == "xla"

    @property
    def stack(self) -> Stack | None:
        """The training software; see `stack_of`."""
        return stack_of(self.workload)

    @property
    def weights_kept(self) -> BoolColumn:
        """Rows that gather their weights once a step and keep them whole until its end, bool[n].

        Under a pipeline every microbatch would gather them again, so trainers do not reshard after
        the forward pass (Llama 3, arXiv 2407.21783, section 3.3.2; torchtitan's default with
        pipelines). A compiler's loop over microbatches gathers in each.
        """
        kept = (self.sizes.pipeline > 1.0) & (self.sizes.gathered_shards > 1.0)
        return kept & (not self.compiled)

    @property
    def groups(self) -> FloatColumn:
        """Groups of attention_data of one replica, float64[n]."""
        return np.maximum(self.table.attention_data.astype(np.float64), 1.0)

    @property
    def residual_shards(self) -> FloatColumn:
        """Over how many tensor ranks the residual stream is cut: all under sequence_parallel."""
        return np.where(self.table.sequence_parallel, self.sizes.tensor, 1.0)

    def by_remat(self, values: dict[Remat, float]) -> FloatColumn:
        """The value of each row's remat policy."""
        return np.array([values[remat] for remat in REMATS])[self.table.remat]


def setting(table: LayoutTable, workload: Workload, calibration: Calibration) -> Setting:
    """The setting of every row of `table`."""
    return setting_with(table, workload, calibration.constants(*constants_key(workload)))


def constants_key(workload: Workload) -> tuple[str, Stack | None, str | None]:
    """(platform, software, chip) whose constants hold for the workload."""
    chip = find_chip(workload.topology.chip)
    kind = chip.name if workload.phase.is_training else None
    return chip.platform, stack_of(workload), kind


def setting_with(table: LayoutTable, workload: Workload, constants: Constants) -> Setting:
    """The same with constants at hand."""
    chip = find_chip(workload.topology.chip)
    arch = architecture(workload.model)
    if not workload.phase.is_training:
        table = joined_replicas(table)
    return Setting(
        table=table,
        workload=workload,
        arch=arch,
        sizes=sizes(
            table, arch, sequence=workload.sequence, serving=not workload.phase.is_training
        ),
        chip=chip,
        links=links(table, workload.topology, chip, constants),
        constants=constants,
    )
