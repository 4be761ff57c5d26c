"""Scrubbing of text."""

from __future__ import annotations

import unicodedata

import report_build
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.report.text import LONGEST, fact_values, filled, plain, to_ascii


def test_controls_become_replacement_characters() -> None:
    assert plain("a\x1b[2Jb\u202ec\u200bd") == "a\ufffd[2Jb\ufffdc\ufffdd"
    assert plain("two\nlines\tand tabs") == "two lines and tabs"
    assert plain("\ud800") == "\ufffd"


def test_length_is_bounded() -> None:
    assert len(plain("x" * 10_000_000)) == LONGEST


@given(st.text())
def test_plain_text_is_one_harmless_line(text: str) -> None:
    shown = plain(text)
    assert not any(unicodedata.category(char).startswith("C") for char in shown)
    assert plain(shown) == shown
    assert to_ascii(shown).isascii()


def test_ascii_spells_what_it_knows() -> None:
    assert to_ascii("4 → 16 × 2 ÷ 8 ≤ 9 µs – é") == "4 -> 16 x 2 / 8 <= 9 us - e"


def test_placeholders_are_filled_and_unknown_ones_kept() -> None:
    facts = fact_values(report_build.training())
    assert filled("takes {fact:step_time}", facts) == "takes 2.14 s"
    assert filled("takes {fact:nothing}", facts) == "takes {fact:nothing}"
