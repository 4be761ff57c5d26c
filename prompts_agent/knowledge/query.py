"""Query: what is known of a job, and which recipes apply to it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator

from prompts_agent.hardware.catalog import find_chip
from prompts_agent.knowledge.recipe import ANY, Recipe
from prompts_agent.knowledge.vocabulary import Architecture, FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.model.spec import ModelSpec
from prompts_agent.record import Record
from prompts_agent.workload.workload import Objective, Phase, Workload

__all__ = ["Query", "architecture_of", "matched", "unmet"]


class Query(Record):
    """A job, as far as it is known.

    A recipe is returned only if every condition that it states is known to hold: where a field is
    unknown (None or empty), recipes that restrict it stay out.
    """

    phase: Phase | None = None
    chip: str | None = None
    """Any name of a chip that the hardware catalogue knows; kept as its short name."""
    architecture: tuple[Architecture, ...] = ()
    """What holds of the model, for example (moe, mla): see `architecture_of`."""
    findings: tuple[FindingKind, ...] = ()
    """Costliest first. Empty, as for a plan without a trace: recipes that move the layout, for any
    finding; a cure for a straggler needs a straggler."""
    axes: tuple[Axis, ...] = ()
    """Axes whose collectives are exposed, costliest first. Empty, where the trace does not name
    them: any."""
    devices: int | None = Field(default=None, ge=1)
    sequence: int | None = Field(default=None, ge=1)
    objective: Objective = Objective.THROUGHPUT
    text: str = ""
    """Anything else in words, such as the titles of the findings."""

    @classmethod
    def of(
        cls,
        workload: Workload,
        findings: tuple[FindingKind, ...] = (),
        axes: tuple[Axis, ...] = (),
        text: str = "",
    ) -> Self:
        """The query for a workload, with what was found in its trace."""
        return cls(
            phase=workload.phase,
            chip=workload.topology.chip,
            architecture=architecture_of(workload.model),
            findings=findings,
            axes=axes,
            devices=workload.topology.devices,
            sequence=workload.sequence,
            objective=workload.objective,
            text=text,
        )

    @field_validator("chip")
    @classmethod
    def _short_name(cls, chip: str | None) -> str | None:
        return None if chip is None else find_chip(chip).name

    @property
    def chip_words(self) -> tuple[str, ...]:
        """What a recipe's `chips` may say to fit: any, the chip, its family."""
        return (ANY,) if self.chip is None else (ANY, self.chip, find_chip(self.chip).platform)

    @property
    def words(self) -> str:
        """The query as text, for the rankings that compare words."""
        return " ".join([self.text, *self.findings, *self.axes, self.objective])


def architecture_of(model: ModelSpec) -> tuple[Architecture, ...]:
    """What recipes ask of a model: how its mlp is made, and how its attention."""
    return (
        Architecture.DENSE if model.moe is None else Architecture.MOE,
        Architecture.KV_HEADS if model.mla is None else Architecture.MLA,
    )


def matched(recipe: Recipe, query: Query) -> tuple[FindingKind, ...]:
    """The query's findings that the recipe treats, in the query's order, each once."""
    return tuple(kind for kind in dict.fromkeys(query.findings) if kind in recipe.applies.findings)


def unmet(recipe: Recipe, query: Query) -> tuple[str, ...]:
    """The conditions of the recipe that the job does not meet, in words; empty: it applies."""
    applies = recipe.applies
    architecture = {ANY, *query.architecture}
    phases = tuple(Phase) if query.phase is None else (query.phase,)
    treats = matched(recipe, query) if query.findings else recipe.sharding
    checks = {
        "phase": all(phase in applies.phases for phase in phases),
        "chip": any(word in applies.chips for word in query.chip_words),
        "architecture": any(word in architecture for word in applies.architectures),
        "objective": query.objective in applies.objectives,
        "devices": _within(query.devices, applies.min_devices, applies.max_devices),
        "sequence": _within(query.sequence, applies.min_sequence, applies.max_sequence),
        "findings": bool(treats),
        "axes": _axes_fit(recipe, query),
    }
    return tuple(name for name, holds in checks.items() if not holds)


def _axes_fit(recipe: Recipe, query: Query) -> bool:
    """A recipe for tensor's reductions is of no use to fsdp's gathers, unless it treats more."""
    if not query.axes or FindingKind.EXPOSED_COLLECTIVE not in query.findings:
        return True
    others = set(query.findings) - {FindingKind.EXPOSED_COLLECTIVE}
    return any(axis in (ANY, *query.axes) for axis in recipe.applies.axes) or not others.isdisjoint(
        recipe.applies.findings
    )


def _within(value: int | None, low: int | None, high: int | None) -> bool:
    if value is None:
        return low is None and high is None
    return (low is None or value >= low) and (high is None or value <= high)
