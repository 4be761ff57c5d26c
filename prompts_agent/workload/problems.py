"""What is wrong with a workload file, in words: pydantic's findings with line, rule and cure."""

from __future__ import annotations

import difflib
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from prompts_agent.errors import WorkloadError
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.axis_names import axis_named
from prompts_agent.workload.document import Document, KeyPath

__all__ = ["readable"]

_MEANING = {
    Axis.PIPELINE: "it cuts the layers into stages",
    Axis.DATA: "it cuts the batch and repeats the weights (fsdp cuts the weights as well)",
    Axis.FSDP: "it cuts the batch and the weights",
    Axis.EXPERT: "it cuts the experts",
    Axis.CONTEXT: "it cuts the sequence",
    Axis.TENSOR: "it cuts heads, mlp and vocab",
}
_CURES = {
    "int_type": "Write a whole number, without quotes.",
    "int_from_float": "Write a whole number.",
    "float_type": "Write a number, without quotes.",
    "bool_type": "Write true or false, without quotes.",
    "string_type": "Write a word or a sentence.",
    "enum": "Write one of them.",
    "literal_error": "Write one of them.",
    "tuple_type": "Write a list: [first, second].",
}


def readable(
    error: ValidationError, record: type[BaseModel], document: Document, base: KeyPath
) -> WorkloadError:
    """The likeliest problem of what should be a `record` at `base`, and how many more there are."""
    problems = [(p, _path(p, document, base)) for p in error.errors(include_url=False)]
    # A misspelt key is also a missing one, and of a union's branches the deepest was meant.
    problem, path = min(problems, key=lambda p: (p[0]["type"] != "extra_forbidden", -len(p[1])))
    rule, cure = _rule_and_cure(problem, path, record, base)
    more = len({other for _, other in problems}) - 1
    if more > 0:
        cure += f" (And {more} more problem{'s' if more > 1 else ''} here.)"
    value = "" if problem["type"] in ("missing", "extra_forbidden") else f" = {_short(problem)}"
    return WorkloadError(f"{document.where(path)}{value}", rule=rule, cure=cure)


def _path(problem: ErrorDetails, document: Document, base: KeyPath) -> KeyPath:
    """The problem's place in the file: pydantic also names union branches, which are no keys."""
    path, loc = base, problem["loc"]
    for i, part in enumerate(loc):
        missing = problem["type"] == "missing" and i == len(loc) - 1
        if missing or (*path, part) in document.lines:
            path = (*path, part)
    return path


def _rule_and_cure(
    problem: ErrorDetails, path: KeyPath, record: type[BaseModel], base: KeyPath
) -> tuple[str, str]:
    kind, key = problem["type"], str(path[-1]) if path else ""
    if kind == "missing":
        return "the key is missing", f"Add `{key}: …`; workloads/README.md shows every key."
    if kind == "extra_forbidden":
        allowed = _keys_at(record, path[len(base) : -1])
        near = difflib.get_close_matches(key, allowed, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        return "no such key", f"{hint}The keys here are {', '.join(allowed)}."
    if kind == "enum" and all(f"'{axis}'" in problem["msg"] for axis in Axis):
        word = str(problem["input"])
        meant = axis_named(word)
        wanted = f"Write {meant}: {_MEANING[meant]}." if meant else f"Axes: {', '.join(Axis)}."
        return f"{word} is not an axis here", wanted
    # "Input should be a valid integer" → "should be a valid integer".
    rule = problem["msg"].removeprefix("Input ")
    return rule, _CURES.get(kind, "Correct the value.")


def _keys_at(record: type[BaseModel], path: KeyPath) -> list[str]:
    """The fields of the record that stands at `path` below `record`."""
    for part in path:
        if isinstance(part, int):
            continue
        field = record.model_fields.get(part)
        # A key of a mapping, such as an axis, is no field: what it holds is found already.
        inner = _record_in(field.annotation) if field is not None else record
        record = inner or record
    return list(record.model_fields)


def _record_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((r for a in get_args(annotation) if (r := _record_in(a)) is not None), None)


def _short(problem: ErrorDetails) -> str:
    text = repr(problem["input"])
    return text if len(text) <= 60 else f"{text[:57]}…"
