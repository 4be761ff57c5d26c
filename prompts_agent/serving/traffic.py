"""Traffic: what the keys and values of a load's sequences need, by counting."""

from __future__ import annotations

from prompts_agent.workload.workload import Traffic

__all__ = ["held_tokens"]


def held_tokens(traffic: Traffic) -> float:
    """Tokens in the cache of one sequence, on average over its decoding: input + output ÷ 2."""
    return traffic.input_tokens + traffic.output_tokens / 2.0
