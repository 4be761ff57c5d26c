"""Order: whether a model's order of the proposals may stand.

Two layouts may change places only where their predicted intervals overlap, where the one that moves
up is as sure to fit, and where a measured cause, or a recipe against one, that the model cites
speaks for it and not for the other. One pair at fault, and the ranking's own order stays; so it
does in a plan without a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from prompts_agent.agents.llm.answers import OrderItem
from prompts_agent.agents.llm.session import Rejection
from prompts_agent.agents.llm.table import Table
from prompts_agent.agents.planner.citations import agrees
from prompts_agent.agents.planner.draft import Draft

__all__ = ["judged_order", "overlap"]


def overlap(one: Draft, two: Draft) -> bool:
    """Their predicted intervals have a point in common; without intervals, no."""
    a, b = one.candidate.predicted, two.candidate.predicted
    if a.low_s is None or a.high_s is None or b.low_s is None or b.high_s is None:
        return False
    return a.low_s <= b.high_s and b.low_s <= a.high_s


def judged_order(item: OrderItem, table: Table) -> tuple[tuple[int, ...], Rejection | None]:
    """Places of `table.drafts` in their new order; the old order where it may not stand."""
    old = tuple(range(len(table.drafts)))
    unknown = [name for name in item.layouts if name not in table.names]
    if unknown:
        return old, Rejection("unknown id", unknown[0][:80])
    named = list(dict.fromkeys(table.names[name] for name in item.layouts))
    new = (*named, *(place for place in old if place not in named))
    for up, down in combinations(new, 2):
        # Held against the ranking, and not against an order that the model gave before.
        if table.ranks[up] < table.ranks[down]:
            continue
        why = _objection(up, down, item.support, table)
        if why is not None:
            return old, Rejection("order without ground", f"p{up + 1} before p{down + 1}: {why}")
    return new, None


def _objection(up: int, down: int, support: Sequence[str], table: Table) -> str | None:
    one, two = table.drafts[up], table.drafts[down]
    if not overlap(one, two):
        return "their intervals do not overlap"
    if _surely_fits(two) and not _surely_fits(one):
        return "it is less sure to fit"
    if not any(_speaks_for(name, one, table) and not _speaks_for(name, two, table)
               for name in support):  # fmt: skip
        return "nothing cited speaks for the one and not for the other"
    return None


def _surely_fits(draft: Draft) -> bool:
    return draft.candidate.hbm_high_bytes <= draft.candidate.predicted.hbm_limit_bytes


def _speaks_for(name: str, draft: Draft, table: Table) -> bool:
    """The draft answers that cause, or does what that recipe says."""
    if name in table.ids.findings:
        facts = set(table.ids.findings[name].fact_ids)
        return bool(facts) and any(facts <= set(reason.fact_ids) for reason in draft.reasons)
    if name in table.ids.recipes:
        item = table.ids.recipes[name]
        # Without a measured cause the ranking knows all that a recipe could say.
        treats = bool(table.ids.findings) and item.reasons[:1] and item.reasons[0][:7] == "treats "
        return bool(treats) and agrees(item.recipe_id, draft.candidate, draft.changes, table.case)
    return False
