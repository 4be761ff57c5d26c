"""Peak memory: what the allocators saw, else what the compiler planned."""

from __future__ import annotations

from prompts_agent.trace.capture import Capture
from prompts_agent.trace.hlo.program import HloProgram

__all__ = ["hbm_peak", "planned"]


def hbm_peak(capture: Capture, main: HloProgram | None) -> tuple[int, str] | None:
    """The peak and its source. Allocator events first: they hold what other programs keep too."""
    if capture.hbm_peak_bytes:
        return capture.hbm_peak_bytes, capture.hbm_peak_source or "allocator events of the trace"
    if main is not None and (bytes_ := planned(main)) is not None:
        return bytes_, f"buffer assignment of {main.name}: what the compiler planned for one device"
    return None


def planned(program: HloProgram) -> int | None:
    """Bytes that a program's buffer assignment takes in HBM, None where there is none."""
    return program.memory.hbm_bytes if program.memory and program.memory.hbm_bytes else None
