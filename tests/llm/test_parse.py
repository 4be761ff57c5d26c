"""JSON out of what models wrap around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.agents.llm.answers import AttackItem, ExtraItem, PlannerAnswer, items, schema_of
from prompts_agent.agents.llm.parse import parse_object


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure!\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('<think>{"b": 2}, no</think>{"a": 1}', {"a": 1}),
        ('<think>{"b": 2}', {"b": 2}),
        ('{"x": 1} {"a": [1, 2, 3]}', {"a": [1, 2, 3]}),
        ('{"a": 1', None),
        ("[1]", None),
        ("", None),
        ("{" * 100_000, None),
        ('{"a":' * 5_000, None),
    ],
)
def test_the_object_in_a_text(text: str, found: object) -> None:
    assert parse_object(text) == found


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    found = parse_object(text)
    assert found is None or isinstance(found, dict)


EXTRA = {
    "data": 1,
    "fsdp": 8.0,
    "tensor": "2",
    "pipeline": 1,
    "expert": 1,
    "context": 1,
    "microbatch": None,
    "gradient_accumulation": None,
    "remat": None,
    "reason": "r",
}


def test_integers_that_are_written_otherwise() -> None:
    found, wrong = items({"extra": [EXTRA]}, "extra", ExtraItem)
    assert (found[0].fsdp, found[0].tensor, wrong) == (8, 2, [])


@pytest.mark.parametrize("value", [0, -8, 1.5, True, "eight", None, 10**30, [8], "8; rm -rf /"])
def test_what_is_no_degree(value: object) -> None:
    found, wrong = items({"extra": [EXTRA | {"fsdp": value}, EXTRA]}, "extra", ExtraItem)
    assert len(found) == 1
    assert len(wrong) == 1


def test_more_items_than_are_read() -> None:
    found, wrong = items({"extra": [EXTRA] * 7}, "extra", ExtraItem, 5)
    assert len(found) == 5
    assert wrong == ["extra: 7 items, at most 5 are read"]


def test_a_list_that_is_none() -> None:
    assert items({"attacks": "none"}, "attacks", AttackItem) == ([], ["attacks is no list"])


def test_the_schema_is_in_the_strict_dialect() -> None:
    def check(schema: object) -> None:
        if isinstance(schema, list):
            for item in schema:
                check(item)
        if not isinstance(schema, dict):
            return
        assert "$ref" not in schema
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
        for item in schema.values():
            check(item)

    check(schema_of(PlannerAnswer))
