"""Why a recipe was retrieved, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prompts_agent.knowledge.query import Query, matched
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.vocabulary import RecipeKind

__all__ = ["reasons"]

_SHOWN_WORDS = 5


def reasons(
    recipe: Recipe,
    query: Query,
    shared: Sequence[str],
    rankings: Mapping[str, Mapping[str, int]],
) -> tuple[str, ...]:
    """What it treats and for which jobs it is; last, for who checks the retrieval, its ranks."""
    findings = matched(recipe, query)
    places = [
        f"{ranking[recipe.id]} by {name}"
        for name, ranking in rankings.items()
        if recipe.id in ranking
    ]
    words = f" (shares {', '.join(shared[:_SHOWN_WORDS])})" if shared else ""
    given = [
        f"treats {', '.join(findings)}" if findings else "moves the layout",
        f"applies to {_scope(recipe)}",
        _measured(recipe),
        f"rank {', '.join(places)}{words}",
    ]
    return tuple(reason for reason in given if reason)


def _measured(recipe: Recipe) -> str:
    if recipe.kind is not RecipeKind.CASE:
        return ""
    return "measured here" if recipe.measured_here else "measured on one job"


def _scope(recipe: Recipe) -> str:
    """The recipe's conditions in words: "decode; any chip; moe; up to 64 devices"."""
    applies = recipe.applies
    parts = [
        ", ".join(applies.phases),
        ", ".join(f"{chip} chip" if chip == "any" else chip for chip in applies.chips),
        ", ".join(f"{kind} model" if kind == "any" else kind for kind in applies.architectures),
        _range("devices", applies.min_devices, applies.max_devices),
        _range("tokens a sequence", applies.min_sequence, applies.max_sequence),
    ]
    return "; ".join(part for part in parts if part)


def _range(what: str, low: int | None, high: int | None) -> str:
    if low is not None and high is not None:
        return f"{low} to {high} {what}"
    if low is not None:
        return f"{low} {what} or more"
    return f"up to {high} {what}" if high is not None else ""
