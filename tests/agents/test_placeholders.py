from __future__ import annotations

import pytest
from agents_build import fact
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.agents.placeholders import (
    fill,
    format_fact,
    placeholder_ids,
    scrub,
    unsupported_numbers,
)
from prompts_agent.errors import InternalError

FACTS = (fact("step_time", 0.7841), fact("hbm.peak", 16_000_000_000, "B"))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.7841, "s", "784 ms"),
        (16_000_000_000, "B", "16.0 GB"),
        (12345, "", "12,345"),
        (4, "devices", "4 devices"),
        (1.97e14, "FLOP/s", "197 TFLOP/s"),
        ("jit_f", "", "jit_f"),
    ],
)
def test_a_fact_is_printed_in_its_unit(value: float | str, unit: str, text: str) -> None:
    assert format_fact(fact("x", value, unit)) == text


def test_a_part_of_a_whole_is_printed_as_percent() -> None:
    assert format_fact(fact("breakdown.idle.share", 0.125, "1")) == "12.5 %"
    assert format_fact(fact("op.1.efficiency", 0.5, "1")) == "50.0 %"


def test_placeholders_are_filled_in() -> None:
    text = "{fact:step_time} at {fact:hbm.peak}, then {term:time.matmul_s}"
    filled = fill(text, FACTS, {"term:time.matmul_s": "0.5 s"})
    assert filled == "784 ms at 16.0 GB, then 0.5 s"
    assert fill(filled, ()) == filled


@pytest.mark.parametrize("text", ["{fact:nobody_measured}", "{term:time.x_s}", "{change:tensor}"])
def test_an_unknown_id_is_refused(text: str) -> None:
    with pytest.raises(InternalError, match="facts and figures that exist"):
        fill(text, FACTS)


def test_ids_of_a_kind_are_listed_once() -> None:
    text = "{fact:a} {fact:b} {fact:a} {change:tensor}"
    assert placeholder_ids(text) == ("a", "b")
    assert placeholder_ids(text, "change") == ("tensor",)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("The step takes {fact:step_time}.", ()),
        ("The step takes 784 ms.", ()),  # as the fact is printed
        ("The step takes 785 ms.", ("785",)),
        ("raises tensor from 4 to 8", ("4", "8")),
        ("a gain of 40.83%", ("40.83",)),
        ("12,345 steps", ("12,345",)),
        ("16GB of it", ()),
        ("17GB of it", ("17",)),
        ("3x faster", ("3",)),
        ("1.5e9 FLOP", ("1.5e9",)),
        ("on v5p in bf16 with 1f1b, 8x8, a 2d mesh", ()),
        ("4chips in 3e9", ("4", "3e9")),
        ("all-reduce.12 and fusion_3", ()),
        ("halves the step", ("halves",)),
        ("twice as fast, a tenfold gain", ("twice", "tenfold")),
        ("４ devices", ("4",)),  # full-width digit
        ("only one step", ()),
    ],
)
def test_numbers_without_a_source_are_found(text: str, numbers: tuple[str, ...]) -> None:
    found = unsupported_numbers(text, FACTS)
    assert found == numbers


@given(st.integers(min_value=2, max_value=10**9))
def test_every_bare_integer_is_found(number: int) -> None:
    assert unsupported_numbers(f"it takes {number} of them") == (str(number),)


@given(st.text(max_size=200))
def test_scrubbed_names_hold_nothing_that_means_something(name: str) -> None:
    safe = scrub(name)
    assert len(safe) <= 80
    assert not set(safe) & set("{}<>`\n\r@#*|!&")


@given(st.text(max_size=200))
def test_text_of_any_kind_is_read_without_error(text: str) -> None:
    unsupported_numbers(text, FACTS)
    placeholder_ids(text)
