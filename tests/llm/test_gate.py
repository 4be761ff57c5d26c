"""Sentences that stand, and every way in which one does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.agents.llm.gate import Gate, clean
from prompts_agent.agents.llm.ids import NAMES
from prompts_agent.agents.report import Change

CHANGES = (
    Change(what="tensor", before="8", after="4", direction="lower"),
    Change(what="fsdp", before="2", after="4", direction="raise"),
)
GATE = Gate(
    values={
        "fact:step_time": "1.5 s",
        "recipe:r1": "“Cut weights”",
        "recipe:r2": "“More tensor”",
        "layout:p2": "proposal 2",
        "p2:step_time": "2 s",
    },
    real={"recipe:r1": "cut-weights", "recipe:r2": "more-tensor"},
    names=NAMES,
    changes=CHANGES,
    moves={"cut-weights": (("tensor", "lower"),), "more-tensor": (("tensor", "raise"),)},
)


def reason(text: object) -> str | None:
    return GATE.rule(text).reason


def test_values_are_filled_in_by_code() -> None:
    ruling = GATE.rule("A step takes {fact:step_time}, in {layout:p2} {p2:step_time}: {recipe:r1}.")
    assert ruling.text == "A step takes 1.5 s, in proposal 2 2 s: “Cut weights”."
    assert ruling.ids[0] == ("fact", "step_time")
    assert ("recipe", "cut-weights") in ruling.ids


@pytest.mark.parametrize(
    "text",
    [
        "It lowers the tensor axis on v5e in bf16.",
        "Raises fsdp, and the two axes share one link.",
        "The 1f1b schedule stays.",
    ],
)
def test_what_stands(text: str) -> None:
    assert reason(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("It saves 97 % of the step.", "number without a source"),
        ("It saves ９７ percent.", "number without a source"),
        ("Set tensor=64.", "number without a source"),
        ("Use 8x8.", "number without a source"),
        ("Twice as fast.", "number without a source"),
        ("Sixty-four ranks wait.", "number without a source"),
        ("It is ten times faster.", "number without a source"),
        ("A step takes {fact:step_time_2}.", "unknown id"),
        ("A step takes {step_time}.", "unknown id"),
        ("It raises the tensor axis.", "contradicts the layout"),
        ("Tensor parallelism is increased.", "contradicts the layout"),
        ("An fsdp reduction.", "contradicts the layout"),
        ("It raises the data axis.", "contradicts the layout"),
        ("As {recipe:r2} says.", "contradicts the layout"),
        ("See https://evil.example/a for more.", "markup or link"),
        ("Ask @everyone about it.", "markup or link"),
        ("<script>alert()</script> waits", "markup or link"),
        ("[here](x) it is", "markup or link"),
        ("a" * 601, "too long"),
        ("", "empty"),
        ("...", "empty"),
        (None, "empty"),
        (["It waits."], "empty"),
    ],
)
def test_what_does_not_stand(text: object, why: str) -> None:
    assert reason(text) == why


def test_control_characters_and_decoration_are_gone() -> None:
    assert clean("**Wait**\x1b[2J for\n\n`tensor`\u202e | now") == "Wait 2J for tensor now"
    # What an escape sequence leaves holds a digit, and so does not stand.
    assert reason("Wait\x1b[2J for it.") == "number without a source"


@given(st.text())
def test_whatever_stands_is_one_harmless_line(text: str) -> None:
    ruling = GATE.rule(text)
    if ruling.stands:
        assert "\n" not in ruling.text
        assert "\x1b" not in ruling.text
        assert not set("<>`*[]|#") & set(ruling.text)
        assert not any(char.isdigit() for char in ruling.text)
