"""Build: the reference step of a phase, or the reason why there is none."""

from __future__ import annotations

from prompts_agent.compile.reference.frame import Frame
from prompts_agent.compile.reference.serve import decode_step, prefill_step
from prompts_agent.compile.reference.step import Step
from prompts_agent.compile.reference.train import train_step
from prompts_agent.workload.workload import Phase

__all__ = ["build"]


def build(frame: Frame) -> Step:
    """A training step for training phases, prefill or decode; `serve` is its decode step.

    What `program.refusal` refuses must not come here.
    """
    if frame.workload.phase.is_training:
        return train_step(frame)
    return prefill_step(frame) if frame.workload.phase is Phase.PREFILL else decode_step(frame)
