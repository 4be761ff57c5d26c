"""Encoder: how many of a server's cached tokens an encoder has read."""

from __future__ import annotations

from prompts_agent.workload.workload import Phase, Workload

__all__ = ["encoder_tokens"]


def encoder_tokens(workload: Workload) -> int:
    """The prompt goes through the encoder, and what the cache holds besides is the decoder's own.

    Of 512 tokens with a prompt of 384: keys and values of 384 for the attention to the encoder and
    of 128 for the decoder's own. Without traffic a prefill step encodes all tokens, and a decode
    step has half of them on either side.
    """
    if workload.traffic is not None:
        return min(workload.traffic.input_tokens, workload.sequence)
    if workload.phase is Phase.PREFILL:
        return workload.sequence
    return max(1, workload.sequence // 2)
