"""Markdown that GitHub shows as meant, whatever a trace calls its ops."""

from __future__ import annotations

import re

import pytest
import report_build
from golden_files import check_golden
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.report.markdown import code, escaped, markdown_text


@pytest.mark.parametrize("name", [*report_build.ALL, "hostile"])
def test_markdown_of_every_kind_of_report(name: str) -> None:
    report = {**report_build.ALL, "hostile": report_build.hostile}[name]()
    check_golden(f"{name}.md", markdown_text(report))


def test_escaped_does_nothing() -> None:
    assert escaped("@octocat") == "@\u200boctocat"
    assert escaped("see #12 and GH-12") == "see \\#\u200b12 and GH\u200b-12"
    assert escaped("<script>&") == "&lt;script&gt;&amp;"
    assert escaped("[a](http://b)") == "\\[a\\](http:\u200b//b)"
    assert escaped("www.evil.example") == "www\u200b.evil.example"
    assert escaped(":tada:") == ":\u200btada:"
    assert escaped("a | b * c _ d $x$") == "a \\| b \\* c \\_ d \\$x\\$"
    assert escaped("- item") == "\\- item"
    assert escaped("1. item") == "\\1. item"
    assert escaped("two\n# lines") == "two \\# lines"


def test_code_span_cannot_be_left() -> None:
    assert code("a`b|c") == "`a'b¦c`"


@given(st.text(max_size=200))
def test_no_text_can_mention_link_or_open_a_tag(text: str) -> None:
    shown = escaped(text)
    assert "\n" not in shown
    assert "<" not in shown
    assert "://" not in shown
    assert not re.search(r"@\w", shown)
    assert not re.search(r"(?<!\\)[\[\]`|*]", shown.replace("\\\\", ""))


def test_every_fold_is_closed() -> None:
    text = markdown_text(report_build.hostile())
    assert text.count("<details>") == text.count("</details>")
    assert "<script" not in text


def test_fence_is_longer_than_any_in_the_config() -> None:
    report = report_build.training()
    first = report.proposals[0]
    assert first.config is not None
    config = first.config.model_copy(update={"text": "a = '````'\n"})
    changed = report.model_copy(
        update={"proposals": (first.model_copy(update={"config": config}),)}
    )
    assert "\n`````python\n" in markdown_text(changed)
