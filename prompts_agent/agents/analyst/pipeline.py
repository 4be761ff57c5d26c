"""Pipeline bubble: stages that wait for their first and after their last microbatch."""

from __future__ import annotations

from prompts_agent.agents.analyst.cite import finding, period_s, sentence
from prompts_agent.agents.finding import Finding
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.workload import Workload

__all__ = ["BUBBLE_SHARE", "bubble_share", "detect"]

BUBBLE_SHARE = 0.05
"""Of the step. Schedules are tuned down to a few percent and then left alone."""


def bubble_share(layout: Layout) -> float:
    """Share of a step that a stage waits: (p − 1) ÷ (v·m + p − 1), arXiv 2104.04473 §2.2.

    p stages, m microbatches, v chunks a stage: 4 stages, 8 microbatches, 1 chunk → 3 ÷ 11.
    """
    stages = layout.mesh.size(Axis.PIPELINE)
    work = layout.gradient_accumulation * layout.virtual_stages
    return (stages - 1) / (work + stages - 1)


def detect(profile: Profile, workload: Workload | None) -> list[Finding]:
    """One finding where today's layout has a pipeline and its schedule leaves a large bubble.

    The bubble is idle time *inside* the program, so a trace alone does not show it; without the
    number of microbatches there is no finding.
    """
    layout = workload.baseline if workload is not None else None
    if layout is None or layout.mesh.size(Axis.PIPELINE) == 1:
        return []
    share, period = bubble_share(layout), period_s(profile)
    if share <= BUBBLE_SHARE:
        return []
    return [
        finding(
            profile,
            FindingKind.PIPELINE_BUBBLE,
            title=sentence(
                profile,
                "Pipeline stages wait for {fact:derived.pipeline.bubble.share} of the step",
                "Pipeline stages wait for their first and after their last microbatch",
            ),
            detail="More microbatches, more chunks a stage (interleaved schedule) or fewer stages "
            "shrink the bubble.",
            is_sharding=True,
            fact_ids=("derived.pipeline.bubble.share",),
            seconds=None if period is None else share * period,
            axis=Axis.PIPELINE.value,
        )
    ]
