"""Case: everything that a draft may argue with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prompts_agent.agents.critic.evidence import RecipeMoves
from prompts_agent.agents.finding import Finding, axes_meant
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.report import Change
from prompts_agent.layout.diff import changes
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis

__all__ = ["Case", "directed_changes"]

_DIRECTIONS = {"more": "raise", "less": "lower", "other": "set"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Findings and recipes, best first, and today's layout as the estimator sees it."""

    training: bool
    findings: tuple[Finding, ...] = ()
    moves: RecipeMoves = field(default_factory=dict)
    today: Candidate | None = None
    axes: Mapping[str, Axis] = field(default_factory=dict)
    """The trace's axis names → ours."""

    def axes_of(self, finding: Finding) -> tuple[Axis, ...]:
        """The axes that a finding is about, in our names."""
        return axes_meant(finding, self.axes)


def directed_changes(before: Layout | None, after: Layout) -> tuple[Change, ...]:
    """What differs from today's layout, in the report's words."""
    return tuple(
        Change.model_validate(
            {
                "what": change.what,
                "before": change.before,
                "after": change.after,
                "direction": _DIRECTIONS[change.direction],
            }
        )
        for change in changes(before, after)
    )
