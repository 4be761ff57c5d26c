"""Every fault of a recipe names the file, the line, the value, the rule and the cure."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.errors import RecipeError
from prompts_agent.knowledge.recipe_file import parse_recipe, read_recipe
from prompts_agent.knowledge.vocabulary import FindingKind, Move
from prompts_agent.layout.mesh import Axis

GOOD = """\
---
id: lower-it
title: Lower the tensor axis
kind: principle
applies:
  phases: [pretrain, posttrain]
  chips: [tpu, h100]
  architectures: [any]
  findings: [exposed_collective]
  min_devices: 4
changes:
  - {axis: tensor, move: lower}
knobs:
  - {knob: microbatch, move: raise}
  - {knob: schedule, value: interleaved}
sharding: true
costs: More gathers.
sources:
  - {title: A book, url: "https://example.org/book"}
---
## Change

Lower it.

## Why it works

`tensor < mlp / 2550`

## When it does not

Decode.

### Nor here

At batch one.

## See it in the trace

Fewer reductions.
"""


def test_a_good_recipe() -> None:
    recipe = parse_recipe(GOOD, "lower-it.md")
    assert recipe.id == "lower-it"
    assert recipe.applies.findings == (FindingKind.EXPOSED_COLLECTIVE,)
    assert recipe.applies.max_devices is None
    assert (recipe.changes[0].axis, recipe.changes[0].move) == (Axis.TENSOR, Move.LOWER)
    assert [str(move) for move in (*recipe.changes, *recipe.knobs)] == [
        "lower tensor",
        "raise microbatch",
        "schedule interleaved",
    ]
    assert recipe.change == "Lower it."
    assert recipe.mechanism == "`tensor < mlp / 2550`"
    assert recipe.validity == "Decode.\n\n### Nor here\n\nAt batch one."
    assert recipe.verify == "Fewer reductions."


# (what is replaced, by what, then parts of: value, rule, cure). Lines are counted in GOOD by hand.
FAULTS = [
    ("---\nid", "id", ":1: 'id: lower-it'", "begins with YAML front matter", "three dashes"),
    (
        "---\n## Change",
        "## Change",
        ":1: front matter without end",
        "ends with a line of three dashes",
        "Add a line `---`",
    ),
    ("title: Lower", "title: [Lower", ":4: ", "is YAML", "Quote text"),
    (
        "title: Lower",
        "id: other\ntitle: Lower",
        "the key 'id' comes twice",
        "every key once",
        "drop",
    ),
    ("title: Lower the tensor axis\n", "", ":2: no 'title'", "states it", "Add `title:`"),
    ("  phases: [pretrain, posttrain]\n", "", ":5: no 'applies.phases'", "states", "Add `phases:`"),
    (
        "costs: More",
        "cost: More",
        ":17: key 'cost'",
        "no such key",
        "Did you mean 'costs'?",
    ),
    ("id: lower-it", "id: Lower_It", ":2: id 'Lower_It'", "kebab-case", "single hyphens"),
    ("kind: principle", "kind: principal", ":4: kind 'principal'", "known words", "'principle'?"),
    (
        "[pretrain, posttrain]",
        "[pretrain, finetune]",
        ":6: applies.phases[1] 'finetune'",
        "known words",
        "Known: pretrain, posttrain, prefill, decode, serve.",
    ),
    (
        "[tpu, h100]",
        "[tpu, h1000]",
        ":7: 'h1000'",
        "no such chip is known",
        "Use one of any, tpu, gpu, v4",
    ),
    (
        "architectures: [any]",
        "architectures: [dence]",
        ":8: applies.architectures[0] 'dence'",
        "known words",
        "Did you mean 'dense'? Known: dense, moe, mla, kv_heads, any.",
    ),
    (
        "[exposed_collective]",
        "[exposed_colective]",
        ":9: applies.findings[0] 'exposed_colective'",
        "known words",
        "Did you mean 'exposed_collective'?",
    ),
    ("[exposed_collective]", "[]", ":9: applies.findings []", "at least 1 item", "Correct"),
    (
        "min_devices: 4",
        "min_device: 4",
        ":10: key 'applies.min_device'",
        "no such key",
        "min_devices",
    ),
    ("min_devices: 4", "min_devices: 0", ":10: applies.min_devices 0", "greater than or equal", ""),
    (
        "min_devices: 4",
        "min_devices: 4\n  max_devices: 2",
        ":10: min_devices 4, max_devices 2",
        "never applies",
        "Swap them",
    ),
    (
        "{axis: tensor, move: lower}",
        "{axis: model, move: lower}",
        ":12: changes[0].axis 'model'",
        "known words",
        "Known: pipeline, data, fsdp, expert, context, tensor.",
    ),
    (
        "{axis: tensor, move: lower}",
        "{axis: tensor, move: drop}",
        ":12: changes[0].move 'drop'",
        "known words",
        "Known: raise, lower, set_one.",
    ),
    (
        "{knob: microbatch, move: raise}",
        "{knob: micro_batch, move: raise}",
        ":14: 'micro_batch'",
        "no such knob",
        "Use one of expert_divides, microbatch",
    ),
    (
        "{knob: microbatch, move: raise}",
        "{knob: microbatch}",
        ":14: knob microbatch",
        "either a move or a value",
        "one of them",
    ),
    (
        "{knob: microbatch, move: raise}",
        "{knob: microbatch, move: raise, value: 2}",
        ":14: knob microbatch",
        "either a move or a value",
        "one of them",
    ),
    (
        "  - {knob: schedule, value: interleaved}",
        "  - {knob: microbatch, move: lower}",
        ":11: microbatch listed twice",
        "moves one way",
        "two recipes",
    ),
    (
        "sharding: true",
        "sharding: false",
        ":11: sharding false with changes",
        "no axis moves",
        "Drop `changes`",
    ),
    (
        "changes:\n  - {axis: tensor, move: lower}\nknobs:\n  - {knob: microbatch, move: raise}\n"
        "  - {knob: schedule, value: interleaved}\n",
        "",
        ":11: sharding true without changes and knobs",
        "which axis or knob moves",
        "sharding: false",
    ),
    ("costs: More gathers.", "costs: ''", ":17: costs ''", "at least 1 character", "Correct"),
    (
        'sources:\n  - {title: A book, url: "https://example.org/book"}',
        "sources: []",
        ":18: no sources",
        "has a public source",
        "measured `here` has none",
    ),
    (
        "https://example.org/book",
        "http://example.org/book",
        ":19: sources[0].url 'http://example.org/book'",
        "public https address",
        "whole https:// URL",
    ),
    (
        "## When it does not",
        "## Limits",
        ":21: sections Change, Why it works, Limits, See it in the trace",
        "exactly these sections in this order",
        "rename",
    ),
    (
        "Fewer reductions.\n",
        "",
        ":21: '## See it in the trace' is empty",
        "no section is empty",
        "",
    ),
    (
        "`tensor < mlp / 2550`",
        "Because.",
        ":21: '## Why it works' without a formula",
        "states the relation",
        "one of <",
    ),
]


@pytest.mark.parametrize(("old", "new", "value", "rule", "cure"), FAULTS)
def test_a_fault_says_where_what_why_and_how(
    old: str, new: str, value: str, rule: str, cure: str
) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(RecipeError) as caught:
        parse_recipe(GOOD.replace(old, new), "dir/lower-it.md")
    error = caught.value
    assert error.value.startswith("dir/lower-it.md:")
    assert value in error.value
    assert rule in error.rule
    assert cure in error.cure
    assert "pydantic" not in str(error)


def test_the_body_is_no_key() -> None:
    with pytest.raises(RecipeError, match=r"x.md:3: key 'body': a recipe has no such key"):
        parse_recipe(GOOD.replace("title: Lower", "body: x\ntitle: Lower"), "x.md")


def test_front_matter_is_a_mapping() -> None:
    with pytest.raises(RecipeError, match=r"x.md:2: front matter is list: it is a mapping"):
        parse_recipe("---\n- a\n---\n", "x.md")


def test_an_empty_file() -> None:
    with pytest.raises(RecipeError, match=r"x.md: empty file: a recipe begins with"):
        parse_recipe("", "x.md")


def test_the_id_is_the_name(tmp_path: Path) -> None:
    path = tmp_path / "other.md"
    path.write_text(GOOD, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        read_recipe(path)
    assert caught.value.value == f"{path}:2: id 'lower-it'"
    assert caught.value.cure == "Write `id: other` or rename the file to lower-it.md."


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "lower-it.md"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_recipe(path) == parse_recipe(GOOD, "lower-it.md")


def test_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "lower-it.md"
    path.write_bytes(b"---\nid: \xff")
    with pytest.raises(RecipeError, match="byte 8: is not UTF-8"):
        read_recipe(path)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be read \\(No such file"):
        read_recipe(tmp_path / "lower-it.md")


@given(st.text(max_size=200))
def test_any_text_is_a_recipe_or_a_recipe_error(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\n", GOOD.replace("lower-it", text)):
        with suppress(RecipeError):
            parse_recipe(whole, "x.md")


@given(
    st.integers(0, len(GOOD)),
    st.integers(0, 30),
    st.text(alphabet=":{}[]-\n &*!|>'\"#%@`,?a1.~<\t", max_size=6),
)
def test_a_damaged_recipe_is_a_recipe_or_a_recipe_error(at: int, cut: int, typed: str) -> None:
    with suppress(RecipeError):
        parse_recipe(GOOD[:at] + typed + GOOD[at + cut :], "x.md")
