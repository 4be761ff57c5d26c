"""Traffic: how many sequences a load keeps in flight, and what their keys and values need.

Little's law, `in flight = arrivals per second × time in the system`, and counting.
"""

from __future__ import annotations

import math

from prompts_agent.errors import WorkloadError
from prompts_agent.workload.workload import Traffic

__all__ = [
    "held_tokens",
    "kv_demand_bytes",
    "occupancy",
    "replicas_needed",
    "request_time_s",
    "requests_per_s",
    "sequences_in_flight",
]


def request_time_s(traffic: Traffic, *, ttft_s: float, tpot_s: float) -> float:
    """Seconds from a request's arrival to its last token: `TTFT + (output - 1) × TPOT`.

    TTFT 0.5 s, TPOT 20 ms, 101 output tokens: 2.5 s.
    """
    return ttft_s + (traffic.output_tokens - 1) * tpot_s


def sequences_in_flight(traffic: Traffic, *, ttft_s: float, tpot_s: float) -> float:
    """Sequences in the system on average.

    Closed loop: the concurrency. Open loop: Little's law (Little, 1961); 4 requests/s of 2.5 s each
    keep 10 in flight. Raises `WorkloadError` where the traffic gives neither.
    """
    if traffic.concurrency is not None:
        return float(traffic.concurrency)
    if traffic.requests_per_s is None:
        raise WorkloadError(
            "traffic without concurrency and requests_per_s",
            rule="one of them decides how many sequences are in flight",
            cure="Give concurrency (closed loop) or requests_per_s (open loop).",
        )
    return traffic.requests_per_s * request_time_s(traffic, ttft_s=ttft_s, tpot_s=tpot_s)


def requests_per_s(traffic: Traffic, *, ttft_s: float, tpot_s: float) -> float:
    """Requests that finish per second: the open loop's own rate, or Little's law the other way."""
    if traffic.requests_per_s is not None:
        return traffic.requests_per_s
    in_flight = sequences_in_flight(traffic, ttft_s=ttft_s, tpot_s=tpot_s)
    return in_flight / request_time_s(traffic, ttft_s=ttft_s, tpot_s=tpot_s)


def held_tokens(traffic: Traffic) -> float:
    """Tokens in the cache of one sequence, on average over its decoding: input + output ÷ 2."""
    return traffic.input_tokens + traffic.output_tokens / 2.0


def kv_demand_bytes(
    traffic: Traffic, *, sequences: float, kv_bytes_per_token: float, page_tokens: int = 16
) -> float:
    """Bytes that the cache needs for `sequences` in flight, in whole pages of `page_tokens`.

    16 tokens a page is vLLM's default block (arXiv 2309.06180, section 7.2); half a page a sequence
    is lost on average, and is counted.
    """
    tokens = held_tokens(traffic) + page_tokens / 2.0
    return sequences * tokens * kv_bytes_per_token


def occupancy(
    traffic: Traffic, *, ttft_s: float, tpot_s: float, replicas: int, batch_limit: int
) -> float:
    """Share of the decode slots of all replicas that are in use, at most 1.

    10 sequences over 2 replicas of 8 slots: 10/16.
    """
    slots = replicas * batch_limit
    if slots < 1:
        raise WorkloadError(
            f"{replicas} replicas of {batch_limit} sequences",
            rule="serving needs at least one slot",
            cure="Give one replica and a batch limit of one or more.",
        )
    return min(1.0, sequences_in_flight(traffic, ttft_s=ttft_s, tpot_s=tpot_s) / slots)


def replicas_needed(
    traffic: Traffic, *, ttft_s: float, tpot_s: float, sequences_per_replica: int
) -> int:
    """Replicas that hold the traffic's sequences when each decodes `sequences_per_replica`."""
    in_flight = sequences_in_flight(traffic, ttft_s=ttft_s, tpot_s=tpot_s)
    return max(1, math.ceil(in_flight / sequences_per_replica))
