"""The retriever: asks the knowledge base for recipes that apply to the job and its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from prompts_agent.agents.finding import Finding, axes_meant
from prompts_agent.hardware.catalog import chip_names
from prompts_agent.knowledge.evidence import Evidence
from prompts_agent.knowledge.library import find_recipe
from prompts_agent.knowledge.query import Query, matched
from prompts_agent.knowledge.recipe import Recipe
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.record import Record
from prompts_agent.trace.profile import Profile
from prompts_agent.workload.workload import Workload

__all__ = ["Cure", "Retrieved", "moves_of", "query", "recall"]

RECIPES = 6
"""Recipes asked for: enough for three proposals to cite different ones."""
MAX_CURES = 3
_MOVES = {"raise": "raise {}", "lower": "lower {}", "set_one": "set {} to one"}


class Cure(Record):
    """A step that is no matter of sharding, and the findings that it treats."""

    text: str
    treats: tuple[FindingKind, ...]


class Retrieved(Record):
    """What the knowledge base gave, best first, and what follows from it."""

    evidence: tuple[Evidence, ...] = ()
    moves: dict[str, tuple[tuple[str, str], ...]] = Field(default_factory=dict)
    """Recipe id → (axis or knob, move); empty for a recipe that moves none."""
    cures: tuple[Cure, ...] = ()
    """Of the recipes whose cure is not sharding."""

    def cures_of(self, kind: FindingKind) -> tuple[str, ...]:
        """The steps against that finding, best first, at most MAX_CURES."""
        return tuple(cure.text for cure in self.cures if kind in cure.treats)[:MAX_CURES]


def query(
    findings: Sequence[Finding],
    workload: Workload | None,
    profile: Profile | None,
    names: Mapping[str, Axis],
) -> Query:
    """The question: what is known of the job, findings and axes in the order of what they cost.

    `names` are the trace's axis names → ours.
    """
    kinds = tuple(dict.fromkeys(f.kind for f in findings))
    exposed = [f for f in findings if f.kind is FindingKind.EXPOSED_COLLECTIVE]
    axes = tuple(dict.fromkeys(axis for f in exposed for axis in axes_meant(f, names)))
    # Kinds of collectives, in XLA's words: nothing that a trace may have named.
    text = " ".join(dict.fromkeys(f.id.split(".")[1] for f in exposed))
    if workload is not None:
        # The job is known, so it is planned for: how to capture a better trace is no evidence.
        told = tuple(kind for kind in kinds if kind is not FindingKind.TRACE_TOO_POOR)
        return Query.of(workload, told, axes, text)
    return Query(
        text=text,
        findings=kinds,
        axes=axes,
        chip=_chip_of(profile),
        devices=profile.devices_in_job if profile is not None else None,
    )


def _chip_of(profile: Profile | None) -> str | None:
    if profile is None or profile.structure_only:
        return None
    if profile.device_kind not in chip_names():
        return None
    return profile.device_kind


def moves_of(recipe: Recipe) -> tuple[tuple[str, str], ...]:
    """(axis or knob, `raise`, `lower` or `set_one`); knobs that take a value are left out."""
    axes = [(change.axis.value, change.move.value) for change in recipe.changes]
    knobs = [(knob.knob, knob.move) for knob in recipe.knobs if knob.move is not None]
    return (*axes, *knobs)


def recall(
    findings: Sequence[Finding],
    workload: Workload | None,
    profile: Profile | None,
    names: Mapping[str, Axis],
    kb_path: Path | None = None,
    kb: str | None = None,
) -> Retrieved:
    """Evidence for the findings; loads the index, which is most of the time.

    `kb_path` holds a team's recipes, `kb` is a Chroma server's address.
    """
    from prompts_agent.knowledge.retrieve import open_base

    asked = query(findings, workload, profile, names)
    with open_base(kb_path, kb) as base:
        evidence = base.retrieve(asked, k=RECIPES)
        if not evidence and workload is not None:
            # No recipe for these findings: those that move the layout of such a job at all.
            evidence = base.retrieve(Query.of(workload), k=RECIPES)
        recipes = [find_recipe(item.recipe_id, base.recipes) for item in evidence]
    pairs = zip(evidence, recipes, strict=True)
    return Retrieved(
        evidence=tuple(_explained(item, recipe, asked) for item, recipe in pairs),
        moves={recipe.id: moves_of(recipe) for recipe in recipes},
        cures=tuple(_cure(recipe) for recipe in recipes if not recipe.sharding),
    )


def _explained(item: Evidence, recipe: Recipe, asked: Query) -> Evidence:
    """Its first reason in words: what it treats here, and what it does about it."""
    kinds = [kind.value.replace("_", " ") for kind in matched(recipe, asked)]
    treats = f"treats {', '.join(kinds)}" if kinds else "for this phase, model and hardware"
    moves = [_MOVES[move].format(what.replace("_", " ")) for what, move in moves_of(recipe)]
    why = f"{treats}: {', '.join(moves)}" if moves else treats
    return item.model_copy(update={"reasons": (why, *item.reasons[1:])})


def _cure(recipe: Recipe) -> Cure:
    """The recipe's title, and the first paragraph of what it says to change, on one line."""
    paragraph = " ".join(recipe.change.split("\n\n")[0].split())
    return Cure(text=f"{recipe.title}: {paragraph}", treats=recipe.applies.findings)
