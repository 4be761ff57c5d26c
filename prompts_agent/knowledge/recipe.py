"""Recipe: when it applies, what to change, why it works, what it costs, where it was measured."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final, Literal, NoReturn, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from prompts_agent.hardware.catalog import chip_names
from prompts_agent.knowledge.plain_text import PlainLine, PlainText
from prompts_agent.knowledge.vocabulary import Architecture, FindingKind, Move, RecipeKind
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Axis
from prompts_agent.record import Record
from prompts_agent.workload.workload import Objective, Phase

__all__ = [
    "ANY",
    "CHIP_FAMILIES",
    "HERE",
    "KNOBS",
    "SECTIONS",
    "Applies",
    "AxisMove",
    "DrawnFrom",
    "KnobMove",
    "Recipe",
    "Source",
]

ANY: Final = "any"
CHIP_FAMILIES = ("tpu", "gpu")
"""A chip's `platform`; a recipe may name these in place of single chips."""

HERE: Final = "here"
"""The source of a case that a team measured itself: no public page, and none is named."""

KNOBS = tuple(name for name in Layout.model_fields if name != "mesh")
"""What moves with a mesh: every field of a layout but the mesh itself."""

MAX_DEVICES: Final = 1 << 20
"""Ten times the largest job that was ever reported; more is a slip of the keyboard."""
MAX_SEQUENCE: Final = 1 << 27

CHANGE, MECHANISM, LIMITS, CHECK = SECTIONS = (
    "Change",
    "Why it works",
    "When it does not",
    "See it in the trace",
)
"""Headings of a recipe's body, in this order."""

_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
_RELATION = re.compile(r"[<>=≤≥≪≫≈∝]")


def _refuse(rule: str, cure: str, *, at: str = "", value: str = "") -> NoReturn:
    """A validation error that carries what `RecipeError` needs; `at` names the key it is about."""
    context = {"rule": rule, "cure": cure, "at": at, "value": value}
    raise PydanticCustomError("recipe_rule", "{rule}", context)


class Applies(Record):
    """When a recipe applies: every stated condition has to hold, any one item of a list will do."""

    phases: tuple[Phase, ...] = Field(min_length=1)
    chips: tuple[str, ...] = Field(min_length=1)
    """Short names of chips (`v5p`), families (`tpu`, `gpu`), or `any`."""
    architectures: tuple[Architecture | Literal["any"], ...] = Field(min_length=1)
    findings: tuple[FindingKind, ...] = Field(min_length=1)
    axes: tuple[Axis | Literal["any"], ...] = Field(default=(ANY,), min_length=1)
    """Over which axes the exposed collective runs; of no account for other findings."""
    objectives: tuple[Objective, ...] = Field(default=tuple(Objective), min_length=1)
    min_devices: int | None = Field(default=None, ge=1, le=MAX_DEVICES)
    max_devices: int | None = Field(default=None, ge=1, le=MAX_DEVICES)
    min_sequence: int | None = Field(default=None, ge=1, le=MAX_SEQUENCE)
    """Tokens of one sequence."""
    max_sequence: int | None = Field(default=None, ge=1, le=MAX_SEQUENCE)

    @model_validator(mode="after")
    def _check(self) -> Self:
        known = (ANY, *CHIP_FAMILIES, *chip_names())
        for chip in self.chips:
            if chip not in known:
                _refuse(
                    "no such chip is known",
                    f"Use one of {', '.join(known)}.",
                    at="chips",
                    value=repr(chip),
                )
        for what in ("devices", "sequence"):
            low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if low is not None and high is not None and low > high:
                _refuse(
                    "the lower bound is above the upper one, so the recipe never applies",
                    f"Swap them or drop one of min_{what} and max_{what}.",
                    at=f"min_{what}",
                    value=f"min_{what} {low}, max_{what} {high}",
                )
        return self


class AxisMove(Record):
    """Which way an axis of the mesh goes."""

    axis: Axis
    move: Move

    def __str__(self) -> str:
        return f"{self.axis} 1" if self.move is Move.SET_ONE else f"{self.move} {self.axis}"


class KnobMove(Record):
    """Which way a knob of the layout goes, or the value that it takes."""

    knob: str
    move: Literal["raise", "lower"] | None = None
    value: bool | int | str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.knob not in KNOBS:
            _refuse(
                "a layout has no such knob",
                f"Use one of {', '.join(KNOBS)}; describe anything else under '## {CHANGE}'.",
                at="knob",
                value=repr(self.knob),
            )
        if (self.move is None) == (self.value is None):
            _refuse(
                "a knob has either a move or a value",
                "Write `move: raise`, `move: lower` or `value: ...`, one of them.",
                value=f"knob {self.knob}",
            )
        return self

    def __str__(self) -> str:
        return f"{self.move} {self.knob}" if self.value is None else f"{self.knob} {self.value}"


class Source(Record):
    """Where a recipe's facts come from."""

    title: PlainLine = Field(min_length=1, max_length=200)
    url: str = Field(pattern=r"^https://[^\s/@]+\.[^\s/@]+(/[^\s<>\"]*)?$", max_length=500)


class DrawnFrom(Record):
    """What a case was drawn from. Whoever scores the advisor on workloads of that source leaves the
    case out first (`prompts_agent.knowledge.library.leave_out`), or it would be told the answer.
    """

    source: str = Field(pattern=r"^(here|arXiv:\d{4}\.\d{4,5}|[\w.-]+/[\w.-]+)$")
    """`owner/name` of the public repository, `arXiv:` and the paper's number, or `here` for what
    the team measured itself."""
    workload: PlainLine = Field(min_length=1, max_length=80)
    """Family of the model and kind of job, for example `llama3-405b pretrain`."""


class Recipe(Record):
    """One entry of the knowledge base. Its text form is Markdown with YAML front matter."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    """Kebab-case, equal to the file's name without `.md`."""
    title: PlainLine = Field(min_length=1, max_length=120)
    kind: RecipeKind
    drawn_from: DrawnFrom | None = None
    """Cases only, and always there."""
    applies: Applies
    changes: tuple[AxisMove, ...] = ()
    knobs: tuple[KnobMove, ...] = ()
    sharding: bool
    """A different layout is the cure. False: the cure is elsewhere, and the mesh is to be left."""
    costs: PlainLine = Field(min_length=1, max_length=300)
    """What one pays for it, in a sentence."""
    sources: tuple[Source, ...] = Field(default=(), max_length=8)
    """Public; none only where `drawn_from` is `here`."""
    body: PlainText = Field(max_length=6000)
    """Markdown with the sections of `SECTIONS`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.sharding and not (self.changes or self.knobs):
            _refuse(
                "a recipe that changes the layout says which axis or knob moves",
                "List it under `changes` or `knobs`, or write `sharding: false`.",
                at="sharding",
                value="sharding true without changes and knobs",
            )
        if not self.sharding and self.changes:
            _refuse(
                "where the cure is not sharding, no axis moves",
                "Drop `changes`, or write `sharding: true`.",
                at="changes",
                value="sharding false with changes",
            )
        if (self.kind is RecipeKind.CASE) != (self.drawn_from is not None):
            _refuse(
                "a case says what it was drawn from, a principle does not",
                "Add `drawn_from: {source: owner/name, workload: ...}`, or change `kind`.",
                at="kind",
                value=f"kind {self.kind}",
            )
        if not self.sources and not self.measured_here:
            _refuse(
                "a recipe has a public source",
                "List it under `sources`; only a case that was measured `here` has none.",
                at="sources",
                value="no sources",
            )
        moved = [change.axis for change in self.changes] + [knob.knob for knob in self.knobs]
        twice = sorted({str(name) for name in moved if moved.count(name) > 1})
        if twice:
            _refuse(
                "an axis or knob moves one way in one recipe",
                "Keep one of the moves, or write two recipes.",
                at="changes",
                value=f"{', '.join(twice)} listed twice",
            )
        _check_body(self.body)
        return self

    @property
    def measured_here(self) -> bool:
        """A case that the team measured itself."""
        return self.drawn_from is not None and self.drawn_from.source == HERE

    @property
    def citation(self) -> str:
        """What a report names as its source: a public address, or `measured here`."""
        return self.sources[0].url if self.sources else "measured here"

    @cached_property
    def sections(self) -> dict[str, str]:
        """Heading → text below it."""
        return split_sections(self.body)

    @property
    def change(self) -> str:
        """What to do, in words."""
        return self.sections[CHANGE]

    @property
    def mechanism(self) -> str:
        """Why it works, with the relation that decides."""
        return self.sections[MECHANISM]

    @property
    def validity(self) -> str:
        """When it does not work."""
        return self.sections[LIMITS]

    @property
    def verify(self) -> str:
        """What a trace shows once it worked."""
        return self.sections[CHECK]


def split_sections(body: str) -> dict[str, str]:
    """Second-level heading → text below it; text above the first heading is left out."""
    parts = _HEADING.split(body)
    return {title: text.strip() for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def _check_body(body: str) -> None:
    titles = tuple(_HEADING.findall(body))
    if titles != SECTIONS:
        wanted = ", ".join(f"'## {title}'" for title in SECTIONS)
        _refuse(
            "the body has exactly these sections in this order: " + wanted,
            "Add, rename or reorder the headings; use '###' for further ones.",
            at="body",
            value=f"sections {', '.join(titles) or 'none'}",
        )
    sections = split_sections(body)
    empty = [title for title in SECTIONS if not sections[title]]
    if empty:
        _refuse("no section is empty", "Write it.", at="body", value=f"'## {empty[0]}' is empty")
    if not _RELATION.search(sections[MECHANISM]):
        _refuse(
            "the mechanism states the relation that decides",
            "Write it as a formula with one of < > = ≤ ≥ ≪ ≫ ≈ ∝.",
            at="body",
            value=f"'## {MECHANISM}' without a formula",
        )
