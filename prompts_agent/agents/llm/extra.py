"""Extra layouts: a model's integers through the gates of legality, memory and time.

They stand beside the proposals, never among them: the search has seen every legal layout, so one
that would rank among them is worth a look and no reason to move what the ranking found.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prompts_agent.agents.llm.answers import ExtraItem
from prompts_agent.agents.llm.table import Table
from prompts_agent.agents.opinion import Considered
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.planner.search import assess, place_among
from prompts_agent.errors import PromptsError
from prompts_agent.estimate.estimator import estimate, rank
from prompts_agent.layout.diff import same_degrees
from prompts_agent.layout.enumerate import enumerate_layouts
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.legality import check
from prompts_agent.layout.mesh import Axis
from prompts_agent.layout.table import REMATS
from prompts_agent.units import format_bytes
from prompts_agent.workload.complete import Surroundings, complete_layout
from prompts_agent.workload.search_space import search_space
from prompts_agent.workload.workload import Workload

__all__ = ["considered"]

_MOST_RANKS = 1 << 24
_KNOBS = ("microbatch", "gradient_accumulation", "remat")


def considered(item: ExtraItem, reason: str | None, table: Table) -> Considered:
    """What the gates say of one suggestion."""
    suggested = _words(item)
    found = Considered(suggested=suggested, verdict="no layout", why="", reason=reason)
    workload = table.workload
    degrees = {axis: int(getattr(item, axis.value)) for axis in Axis}
    try:
        layout = _best_knobs(item, degrees, workload)
        if layout is None:
            return found.model_copy(update=_why_not(item, degrees, workload))
    except (PromptsError, ValueError, ArithmeticError):
        return found.model_copy(update={"why": _no_mesh(workload)})
    weighed = _weighed(layout, assess(workload, [layout])[0], table)
    return weighed.model_copy(update={"suggested": suggested, "reason": reason})


def _best_knobs(item: ExtraItem, degrees: dict[Axis, int], workload: Workload) -> Layout | None:
    """The best legal layout of that mesh with the knobs that are given; None where there is none.

    The search is the planner's own, narrowed to one mesh.
    """
    if math.prod(degrees.values()) > _MOST_RANKS:
        return None
    narrowed = workload.constraints.model_copy(
        update={"min_degree": degrees, "max_degree": degrees}
    )
    space = search_space(workload.model_copy(update={"constraints": narrowed}))
    table = enumerate_layouts(space).table
    keep = np.ones(len(table), dtype=np.bool_)
    if workload.phase.is_training:
        if item.microbatch is not None:
            keep &= table.microbatch == item.microbatch
        if item.gradient_accumulation is not None:
            keep &= table.gradient_accumulation == item.gradient_accumulation
        if item.remat is not None:
            keep &= table.remat == REMATS.index(item.remat)
    table = table.take(keep)
    if not len(table):
        return None
    return table.row(int(rank(estimate(table, workload), table, workload)[0]))


def _why_not(item: ExtraItem, degrees: dict[Axis, int], workload: Workload) -> dict[str, Any]:
    """The first rule that the suggestion breaks."""
    knobs = {n: getattr(item, n) for n in _KNOBS if getattr(item, n) is not None}
    around = Surroundings(
        topology=workload.topology,
        phase=workload.phase,
        global_batch=workload.global_batch,
        constraints=workload.constraints,
        precision=workload.precision,
    )
    training = workload.phase.is_training
    layout, _ = complete_layout(degrees, knobs if training else {}, around)
    checks = check(layout, search_space(workload))
    broken = [one.text for one in checks if one.forbids and not one.ok]
    if layout.devices != workload.topology.devices:
        return {"why": _no_mesh(workload)}
    why = broken[0] if broken else "the search offers no such knobs for this mesh"
    return {"layout": layout, "verdict": "not legal", "why": why}


def _no_mesh(workload: Workload) -> str:
    return f"its axes are no mesh of {workload.topology.devices} devices"


def _weighed(layout: Layout, candidate: Candidate, table: Table) -> Considered:
    predicted = candidate.predicted
    found = Considered(
        layout=layout,
        suggested="",
        step_time_s=predicted.step_time_s,
        low_s=predicted.low_s,
        high_s=predicted.high_s,
        hbm_bytes=predicted.hbm_bytes,
        hbm_limit_bytes=predicted.hbm_limit_bytes,
        verdict="ranks below",
        why="the same ranking puts it below every proposal",
    )
    if candidate.hbm_high_bytes > predicted.hbm_limit_bytes and table.found.surely_fits:
        need, limit = (
            format_bytes(candidate.hbm_high_bytes),
            format_bytes(predicted.hbm_limit_bytes),
        )
        return found.model_copy(
            update={"verdict": "does not fit", "why": f"memory up to {need} > {limit} usable"}
        )
    for place, draft in enumerate(table.drafts, 1):
        if same_degrees(draft.layout, layout):
            why = f"its mesh is proposal {place}'s"
            return found.model_copy(update={"verdict": "proposed already", "why": why})
    others = [draft.layout for draft in table.drafts]
    place = place_among(table.workload, layout, others)
    if place <= len(others):
        why = f"the same ranking would put it at place {place}"
        return found.model_copy(update={"verdict": "ranks among", "why": why})
    return found


def _words(item: ExtraItem) -> str:
    used = [f"{axis} {getattr(item, axis.value)}" for axis in Axis if getattr(item, axis.value) > 1]
    knobs = [
        f"{name.replace('_', ' ')} {getattr(item, name)}"
        for name in _KNOBS
        if getattr(item, name) is not None
    ]
    return ", ".join([" × ".join(used) or "one device", *knobs])
