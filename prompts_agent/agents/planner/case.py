"""Case: everything that a draft may argue with; and its standing among the other drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prompts_agent.agents.critic.evidence import RecipeMoves
from prompts_agent.agents.finding import Finding, axes_meant
from prompts_agent.agents.planner.draft import Candidate
from prompts_agent.agents.report import Change
from prompts_agent.layout.diff import LayoutChange, changes, changes_of_degrees
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.workload import Objective, Workload

__all__ = ["Case", "Standing", "changes_from_today", "standings"]

_SERVING_KNOBS = frozenset({"attention_data", "batch_limit", "kv_dtype"})
_TRAINING_KNOBS = frozenset(
    {
        "gradient_accumulation",
        "microbatch",
        "remat",
        "schedule",
        "sequence_parallel",
        "virtual_stages",
        "weights_over_context",
        "zero_stage",
    }
)
_DIRECTIONS = {"more": "raise", "less": "lower", "other": "set"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Findings and recipes, best first, and today's layout as the estimator sees it."""

    workload: Workload | None = None
    findings: tuple[Finding, ...] = ()
    moves: RecipeMoves = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    """Recipe id → its title."""
    today: Candidate | None = None
    traced: Mapping[Axis, int] = field(default_factory=dict)
    """Degrees of the mesh that ran, where it is none of these devices and `today` is None."""
    axes: Mapping[str, Axis] = field(default_factory=dict)
    """The trace's axis names → ours."""

    @property
    def objective(self) -> Objective:
        """What is better."""
        return self.workload.objective if self.workload is not None else Objective.THROUGHPUT

    @property
    def is_training(self) -> bool:
        """Whether a step has a backward pass."""
        return self.workload is None or self.workload.phase.is_training

    @property
    def from_nothing(self) -> bool:
        """No layout is known that a draft would change."""
        return self.today is None and not self.traced

    def axes_of(self, finding: Finding) -> tuple[Axis, ...]:
        """The axes that a finding is about, in our names."""
        return axes_meant(finding, self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A draft's neighbours in the ranking."""

    first: bool = True
    other: Candidate | None = None
    """What it is compared with: the best, or for the best the second."""
    above: Candidate | None = None
    """The one ranked just above, where that is not `other`."""
    judged: bool = False
    """A language model, and not the ranking, set the order against `other`."""
    judged_above: bool = False
    """The same of the order against `above`."""


def standings(
    candidates: Sequence[Candidate], ranks: Sequence[int] | None = None
) -> tuple[Standing, ...]:
    """Of every candidate, best first. `ranks` are the ranking's own, where they come in another
    order.
    """
    own = list(range(len(candidates))) if ranks is None else list(ranks)
    found = []
    for place, _ in enumerate(candidates):
        second = candidates[1] if len(candidates) > 1 else None
        other = second if place == 0 else candidates[0]
        above = candidates[place - 1] if place > 1 else None
        against = (1 if place == 0 else 0) if other is not None else place
        found.append(
            Standing(
                first=place == 0,
                other=other,
                above=above,
                judged=(own[place] < own[against]) != (place < against),
                judged_above=above is not None and own[place] < own[place - 1],
            )
        )
    return tuple(found)


def changes_from_today(case: Case, after: Layout) -> tuple[Change, ...]:
    """What differs from today's layout, or from the degrees that ran, in the report's words.

    Knobs of a phase that this is not (recomputation in serving) say nothing and are left out.
    """
    if case.today is not None:
        found = changes(case.today.layout, after)
    elif case.traced:
        found = changes_of_degrees(case.traced, after)
    else:
        found = changes(None, after)
    others = _SERVING_KNOBS if case.is_training else _TRAINING_KNOBS
    return tuple(_directed(change) for change in found if change.what not in others)


def _directed(change: LayoutChange) -> Change:
    return Change.model_validate(
        {
            "what": change.what,
            "before": change.before,
            "after": change.after,
            "direction": _DIRECTIONS[change.direction],
        }
    )
