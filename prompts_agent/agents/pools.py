"""What separate pools for prefill and decode would do beside the proposals, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from prompts_agent.agents.report import Proposal
from prompts_agent.estimate.separate_pools import Pool, separate_pools
from prompts_agent.layout.mesh import Axis
from prompts_agent.units import format_seconds
from prompts_agent.workload.workload import Workload

__all__ = ["pools_text"]


def pools_text(workload: Workload | None, proposed: Sequence[Proposal]) -> str | None:
    """None in training, where requests come at a rate (pools are sized for requests in flight), and
    where no split of the devices was found.
    """
    if workload is None or workload.phase.is_training or not proposed:
        return None
    if workload.traffic is not None and workload.traffic.requests_per_s is not None:
        return None
    split = separate_pools(workload)
    if split is None:
        return None
    ours = proposed[0].predicted.tokens_per_s
    beside = f" (proposal 1: {ours:,.0f})" if ours else ""
    return (
        f"With separate pools, {_pool(split.prefill)} would prefill and {_pool(split.decode)} "
        f"decode: estimated {split.tokens_per_s:,.0f} tokens/s{beside}, "
        f"TTFT {format_seconds(split.ttft_s)}, TPOT {format_seconds(split.tpot_s)}, without moving "
        "the cache between them."
    )


def _pool(pool: Pool) -> str:
    groups = pool.layout.attention_data
    inside = f" (attention data {groups})" if groups > 1 else ""
    used = pool.layout.mesh.used()
    mesh = f"{pool.layout.mesh}" if used else "one device"
    if set(used) == {Axis.TENSOR}:
        mesh = f"tensor {used[Axis.TENSOR]}"
    return f"{pool.workers} × {mesh}{inside}"
