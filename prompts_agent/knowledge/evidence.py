"""Evidence: one recipe that applies to a job, with its score and the reasons it was retrieved."""

from __future__ import annotations

from pydantic import Field

from prompts_agent.record import Record

__all__ = ["Evidence"]


class Evidence(Record):
    """A pointer to a recipe; `prompts_agent.knowledge.library.find_recipe` gives the recipe."""

    recipe_id: str
    title: str
    score: float = Field(ge=0.0, le=1.0)
    """Fused rank (`prompts_agent.knowledge.fuse`): 1 is first in every ranking, 0 is in none. It
    compares recipes of one retrieval; it is no probability and not comparable across queries."""
    source: str
    """URL of the recipe's first source; `measured here` for a case of the team's own."""
    reasons: tuple[str, ...] = ()
    """Why it was returned, in words."""
