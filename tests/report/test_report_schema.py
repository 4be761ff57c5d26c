"""The published schema describes what is printed."""

from __future__ import annotations

import json
from typing import Any

from prompts_agent.agents.report import SCHEMA_VERSION, Report
from prompts_agent.report.schema import report_schema, schema_text


def test_head_and_determinism() -> None:
    schema = report_schema()
    assert next(iter(schema)) == "$schema"
    assert schema["title"] == f"prompts report {SCHEMA_VERSION}"
    assert json.loads(schema_text()) == schema
    assert schema_text() == schema_text()


def test_top_level_fields_are_those_of_the_record() -> None:
    assert list(report_schema()["properties"]) == list(Report.model_fields)


def test_strings_beside_fields_are_descriptions() -> None:
    schema = report_schema()
    trace = schema["properties"]["trace"]
    assert trace["description"] == "None for a plan without a trace."
    step = schema["$defs"]["StepTimes"]["properties"]["period_s"]
    assert step["description"].startswith("Start to start")


def test_every_record_and_reference_is_described() -> None:
    schema = report_schema()
    for name, definition in schema["$defs"].items():
        assert definition.get("description"), f"{name} has no docstring"
    known = set(schema["$defs"])
    assert {name.rsplit("/", 1)[-1] for name in _references(schema)} <= known


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if "$ref" in node else []
        return own + [found for value in node.values() for found in _references(value)]
    if isinstance(node, list):
        return [found for value in node for found in _references(value)]
    return []
