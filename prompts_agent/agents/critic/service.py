"""What a server does with its load: limits on latency that it keeps or breaks, and who waits."""

from __future__ import annotations

from collections.abc import Iterator

from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.units import format_seconds
from prompts_agent.workload.workload import Workload

__all__ = ["service_checks"]


def service_checks(candidate: Candidate, workload: Workload | None) -> Iterator[str]:
    """Sentences about each limit of the traffic, and about sequences that the cache has no room
    for; nothing in training.
    """
    if workload is None or workload.traffic is None:
        return
    traffic, terms = workload.traffic, candidate.terms
    for words, term, limit in (
        ("TTFT", "serving.ttft_s", traffic.ttft_limit_s),
        ("TPOT", "serving.tpot_s", traffic.tpot_limit_s),
    ):
        if limit is not None and term in terms:
            kept = "≤" if terms[term] <= limit else "> (beyond)"
            found, asked = format_seconds(terms[term]), format_seconds(limit)
            yield f"{words} {found} {kept} the limit of {asked}"
    running, used = terms.get("load.running_sequences"), terms.get("load.utilisation")
    if running is not None and used is not None and traffic.requests_per_s is not None:
        yield _open_loop(traffic.requests_per_s, running, used)
        return
    share = -(-workload.global_batch // candidate.layout.batch_shards)
    if running is not None and running < share:
        limited = candidate.layout.batch_limit
        why = "its batch limit" if limited and running >= limited else "room in its cache"
        at_once = f"a replica works on {running:.0f} of {share} sequences at once"
        yield f"{at_once}; the rest wait for {why}"


def _open_loop(requests_per_s: float, running: float, used: float) -> str:
    """How near a rate of arrivals comes to what the layout can serve."""
    rate = f"{requests_per_s:g} requests per second are {used:.0%} of what it can serve"
    if used >= 1.0:
        return (
            f"{rate}: it falls behind for as long as they come; TTFT is what a request waits after "
            "an hour"
        )
    return f"{rate}; a replica works on {running:.1f} sequences at once"
