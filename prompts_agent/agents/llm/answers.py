"""Answers: the forms that the four agents' replies take, and their JSON Schemas.

A reply is read item by item: one that has not the form is dropped and the others stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from prompts_agent.layout.layout import Remat
from prompts_agent.layout.mesh import Axis

__all__ = [
    "MOST_EXTRA",
    "AnalystAnswer",
    "AttackItem",
    "CaseItem",
    "CriticAnswer",
    "EvidenceItem",
    "ExtraItem",
    "OrderItem",
    "PlannerAnswer",
    "QueryItem",
    "RetrieverAnswer",
    "StoryItem",
    "TextItem",
    "items",
    "schema_of",
]

MOST_EXTRA = 5
"""Layouts that a model may suggest in one run."""
_MOST_ITEMS = 12
_LARGEST = 1 << 20

M = TypeVar("M", bound=BaseModel)
Count = Annotated[int, Field(ge=1, le=_LARGEST)]


def _whole(value: object) -> object:
    """`8.0` and `"8"` are the integer that they mean; `True` is none."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


Degree = Annotated[Count, BeforeValidator(_whole)]
Knob = Annotated[Count | None, BeforeValidator(_whole)]


class _Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TextItem(_Item):
    """A sentence."""

    text: str


class StoryItem(_Item):
    """A cause of the list, and how it hangs together with the ones before."""

    cause: str
    text: str


class AnalystAnswer(_Item):
    """Causes in an order that explains, and what another capture should hold."""

    story: list[StoryItem]
    capture_next: list[TextItem]


class QueryItem(_Item):
    """A question to the knowledge base."""

    words: str
    causes: list[str]
    axes: list[Axis]


class EvidenceItem(_Item):
    """A recipe of the list, kept or not."""

    recipe: str
    keep: bool
    reason: str


class RetrieverAnswer(_Item):
    """Questions, and a judgement of each recipe."""

    queries: list[QueryItem]
    evidence: list[EvidenceItem]


class OrderItem(_Item):
    """All layouts of the list in another order, what supports it, and why."""

    layouts: list[str]
    support: list[str]
    text: str


class CaseItem(_Item):
    """A sentence about one layout."""

    layout: str
    text: str


class ExtraItem(_Item):
    """Another layout, as integers; a knob that is null follows from the rest."""

    data: Degree
    fsdp: Degree
    tensor: Degree
    pipeline: Degree
    expert: Degree
    context: Degree
    microbatch: Knob
    gradient_accumulation: Knob
    remat: Remat | None
    reason: str


class PlannerAnswer(_Item):
    """An order or none, sentences, other layouts."""

    order: OrderItem | None
    cases: list[CaseItem]
    extra: list[ExtraItem]


class AttackItem(_Item):
    """What is held against one layout."""

    layout: str
    kind: Literal["assumption", "contradiction", "risk"]
    text: str
    falsified_by: str
    send_back: bool


class CriticAnswer(_Item):
    """Attacks, at least one a layout."""

    attacks: list[AttackItem]


def items(
    raw: Mapping[str, Any], key: str, form: type[M], most: int = _MOST_ITEMS
) -> tuple[list[M], list[str]]:
    """The well-formed items of a list, and a line for each that is not."""
    found, wrong = [], []
    value = raw.get(key, [])
    if not isinstance(value, list):
        return [], [f"{key} is no list"]
    for number, item in enumerate(value[:most], 1):
        try:
            found.append(form.model_validate(item))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, (key, number, *first["loc"])))
            wrong.append(f"{where}: {first['msg']}"[:120])
    if len(value) > most:
        wrong.append(f"{key}: {len(value)} items, at most {most} are read")
    return found, wrong


def schema_of(form: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema in the strict dialect of structured output: references resolved, everything
    required, nothing else allowed, and only the keywords that all servers know.
    """
    whole = form.model_json_schema()
    return _strict(whole, whole.get("$defs", {}))


def _strict(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _strict(parts[schema["$ref"].rsplit("/", 1)[1]], parts)
    kept: dict[str, Any] = {k: schema[k] for k in ("type", "enum") if k in schema}
    if "anyOf" in schema:
        kept["anyOf"] = [_strict(item, parts) for item in schema["anyOf"]]
    if "items" in schema:
        kept["items"] = _strict(schema["items"], parts)
    if "properties" in schema:
        kept["properties"] = {k: _strict(v, parts) for k, v in schema["properties"].items()}
        kept["required"] = list(schema["properties"])
        kept["additionalProperties"] = False
    return kept
