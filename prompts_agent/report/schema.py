"""The JSON Schema of a report, with the descriptions that stand beside its fields in the source."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
from functools import cache
from typing import Any

from pydantic import BaseModel

from prompts_agent.agents.report import SCHEMA_VERSION, Report
from prompts_agent.record import Record

__all__ = ["report_schema", "schema_text"]


def report_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of what `--format json` prints."""
    schema = Report.model_json_schema(mode="serialization")
    models = {model.__name__: model for model in _records(Record)}
    for name, definition in {**schema.get("$defs", {}), Report.__name__: schema}.items():
        if name in models:
            _describe(definition, models[name])
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"prompts report {SCHEMA_VERSION}",
    }
    return head | {key: value for key, value in schema.items() if key != "title"}


def schema_text() -> str:
    """`report_schema` as indented JSON with a final newline."""
    return json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"


def _records(base: type[BaseModel]) -> list[type[BaseModel]]:
    return [model for child in base.__subclasses__() for model in (child, *_records(child))]


def _describe(definition: dict[str, Any], model: type[BaseModel]) -> None:
    texts = _field_texts(model.__module__).get(model.__name__, {})
    for name, field in definition.get("properties", {}).items():
        if name in texts:
            field.setdefault("description", texts[name])


@cache
def _field_texts(module: str) -> dict[str, dict[str, str]]:
    """Class → field → the string that follows the field. Read from the source, because pydantic
    would otherwise have to read it each time that the package is imported.
    """
    try:
        tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    except OSError:  # an installation without sources still has a schema
        return {}
    return {
        node.name: {
            field.target.id: inspect.cleandoc(text.value.value)
            for field, text in zip(node.body, node.body[1:], strict=False)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        }
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
