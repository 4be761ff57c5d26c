"""Rates: how fast one device works, and what an op therefore takes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from prompts_agent.compile.schedule.scheduled import Scheduled
from prompts_agent.compile.schedule.touched import Touched
from prompts_agent.estimate.calibration import Constants
from prompts_agent.hardware.chip import Chip
from prompts_agent.trace.hlo.program import Instruction
from prompts_agent.trace.hlo.shape import Shape

__all__ = ["FREE", "OpCosts", "Rates"]

FREE = {
    "parameter", "get-tuple-element", "tuple", "bitcast", "constant", "partition-id",
    "replica-id", "after-all", "opt-barrier", "add-dependency",
}  # fmt: skip
"""Opcodes that run nothing."""

_MXU_FLOPS_PER_CYCLE = {
    "v2": 65536, "v3": 131072, "v4": 262144, "v5e": 131072, "v5p": 262144,
    "v6e": 524288, "tpu7x": 524288,
}  # fmt: skip
"""Of one JAX device, bf16. 128 x 128 (from v6e on 256 x 256) multiply-adds a matrix unit; the peak
of the data sheet over it is the clock that the compiler's cycles are of: 1.5 GHz on v5e, 1.75 GHz
on v5p and v6e, where its best matmul fusions then sit within 4% of the peak."""
_MATMUL = 0.93
"""Share of peak that the compiler's own cycles give its best large matmuls (v5e, v5p, v6e)."""
_HBM = 0.85
"""Share of the data sheet's HBM bandwidth that its elementwise fusions reach."""
_KERNEL_S = {"gpu": 3e-6, "tpu": 0.0}
"""Launch of a GPU's kernel; on a TPU ops follow each other without one."""
_GPU_MATMUL = 0.72
"""Share of peak of a large matmul on a GPU, public MaxText runs on A3 machines."""
_PEAKS = {
    "bf16": ("bf16", "fp16"), "f16": ("fp16", "bf16"), "s8": ("int8",), "u8": ("int8",),
    "f32": ("tf32", "fp32", "bf16"),
}  # fmt: skip
_ATTENTION = re.compile(r"splash|flash|fmha|mha|attention", re.IGNORECASE)
_BACKWARD = (("dkv", 2.5), ("bwd", 2.5), ("backward", 2.5), ("dq", 1.5))
"""Matmuls of a pass over those of the forward one, two: the fused backward one recomputes the
scores and makes dv, dp, dq and dk, five in all (arXiv 2307.08691, section 3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What one device reaches. `clock_hz` is None where no cycles are to be turned into seconds."""

    chip: Chip
    clock_hz: float | None
    matmul_efficiency: float
    attention_efficiency: float
    hbm_bytes_per_s: float
    host_bytes_per_s: float
    launch_s: float

    @classmethod
    def of(cls, chip: Chip, constants: Constants) -> Rates:
        """Rates of `chip`; attention's and the host link's shares are the estimator's."""
        per_cycle = _MXU_FLOPS_PER_CYCLE.get(chip.name)
        peak = chip.peak_flops.get("bf16")
        host = chip.host_link_bandwidth_bytes_per_s
        return cls(
            chip=chip,
            clock_hz=peak / per_cycle if per_cycle and peak else None,
            matmul_efficiency=_MATMUL if chip.platform == "tpu" else _GPU_MATMUL,
            attention_efficiency=constants.attention_efficiency,
            hbm_bytes_per_s=chip.hbm_bandwidth_bytes_per_s * _HBM,
            host_bytes_per_s=(host or math.inf) * constants.host_efficiency,
            launch_s=_KERNEL_S[chip.platform],
        )

    def peak(self, dtype: str) -> float:
        """FLOP/s of the matrix units for operands of an HLO type."""
        known = self.chip.peak_flops
        for name in (*_PEAKS.get(dtype, ("fp8",) if dtype.startswith("f8") else ()), "bf16"):
            if name in known:
                return known[name]
        return max(known.values())


class OpCosts:
    """Seconds of the ops of one program on one device."""

    def __init__(self, scheduled: Scheduled, rates: Rates, *, use_cycles: bool = True) -> None:
        self._scheduled = scheduled
        self._program = scheduled.program
        self._rates = rates
        self._touched = Touched(scheduled.program)
        self._use_cycles = use_cycles and rates.clock_hz is not None

    def seconds(self, instruction: Instruction) -> float:
        """What `instruction` takes alone: the compiler's cycles, or a roofline."""
        if instruction.opcode in FREE:
            return 0.0
        cycles = self._scheduled.cycles.get(instruction.name)
        if cycles and self._use_cycles and self._rates.clock_hz:
            return cycles / self._rates.clock_hz
        if instruction.opcode == "custom-call":
            return self._call_s(instruction)
        return self._roofline_s(instruction)

    def touched_bytes(self, instruction: Instruction) -> int:
        """HBM bytes that it reads and writes."""
        return self._touched.bytes_of(instruction.name)

    def flops(self, instruction: Instruction) -> float:
        """FLOPs of the matmuls in it, and of an attention kernel."""
        if instruction.opcode == "custom-call":
            return self._opaque(instruction) or self._attention_flops(instruction) or 0.0
        inner = sum(self._opaque(i) for i in self._program.called(instruction))
        return float(self._program.flops(instruction) or 0) + self._opaque(instruction) + inner

    def _opaque(self, instruction: Instruction) -> float:
        return self._scheduled.opaque_flops.get(instruction.name, 0.0)

    def _roofline_s(self, instruction: Instruction) -> float:
        rates = self._rates
        moving_s = self.touched_bytes(instruction) / rates.hbm_bytes_per_s
        flops = self.flops(instruction)
        if not flops:
            return moving_s + rates.launch_s
        dot = self._program.dot_of(instruction)
        peak = rates.peak(dot.dtype if dot else "bf16") * rates.matmul_efficiency
        return max(flops / peak, moving_s) + rates.launch_s

    def _call_s(self, instruction: Instruction) -> float:
        rates = self._rates
        product = self._opaque(instruction)
        if product:
            peak = rates.peak(self._operand_dtype(instruction)) * rates.matmul_efficiency
            moving_s = self.touched_bytes(instruction) / rates.hbm_bytes_per_s
            return max(product / peak, moving_s) + rates.launch_s
        attention = self._attention_flops(instruction)
        if attention is not None:
            peak = rates.peak("bf16") * rates.attention_efficiency
            return attention / peak + rates.launch_s
        if not _runs(instruction):
            return 0.0
        return self.touched_bytes(instruction) / rates.hbm_bytes_per_s + rates.launch_s

    def _operand_dtype(self, instruction: Instruction) -> str:
        shapes = [s for s in self._shapes(instruction) if s.dtype.startswith(("bf", "f", "s8"))]
        return shapes[0].dtype if shapes else "bf16"

    def _shapes(self, instruction: Instruction) -> list[Shape]:
        known = self._program.instructions
        return [known[name].shape for name in instruction.operands if name in known]

    def _attention_flops(self, instruction: Instruction) -> float | None:
        """Of a flash attention kernel, causal where queries are as many as keys; None: no such.

        Two matmuls of 2 × batch × heads × S × T × head_dim, of which a causal mask leaves half.
        """
        words = f"{instruction.custom_call_target} {instruction.name} {instruction.op_name}"
        if not _ATTENTION.search(words):
            return None
        wide = [s for s in self._shapes(instruction) if s.dtype[:2] in ("bf", "f1", "f3", "f8")]
        wide = [shape for shape in wide if len(shape.dims) >= 3]
        if len(wide) < 2:
            return None
        rows, queries, keys, head = _extents(wide[0], wide[1], instruction)
        share = 0.5 if queries == keys else 1.0
        passes = next((p for word, p in _BACKWARD if word in words.lower()), 1.0)
        return 4.0 * rows * queries * keys * head * share * passes


def _extents(q: Shape, k: Shape, instruction: Instruction) -> tuple[int, int, int, int]:
    """(batch × heads, queries, keys, head dim): [.., S, D] on TPUs, [B, S, H, D] for cuDNN."""
    if "fmha" in (instruction.custom_call_target or "") and len(q.dims) == 4:
        return q.dims[0] * q.dims[2], q.dims[1], k.dims[1], q.dims[3]
    return math.prod(q.dims[:-2]), q.dims[-2], k.dims[-2], q.dims[-1]


def _runs(instruction: Instruction) -> bool:
    """Whether a call is a kernel: buffers are only named by the others."""
    target = instruction.custom_call_target or ""
    return target not in ("AllocateBuffer", "ConcatBitcast", "Sharding", "SPMDFullToShardShape")
