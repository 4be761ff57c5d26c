"""The comment on a pull request: headline, one table, folds, and a length that GitHub takes."""

from __future__ import annotations

import re

import pytest
import report_build
from golden_files import check_golden

from prompts_agent.errors import InputError
from prompts_agent.report.github import COMMENT_LIMIT, github_text, marker

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("name", [*report_build.ALL, "hostile"])
def test_comment_of_every_kind_of_report(name: str) -> None:
    report = {**report_build.ALL, "hostile": report_build.hostile}[name]()
    check_golden(f"{name}.github.md", github_text(report, commit=COMMIT))


def test_the_headline_says_what_changes_what_it_gains_and_how_far_it_was_checked() -> None:
    lines = github_text(report_build.training(), commit=COMMIT).splitlines()
    assert lines[0] == "<!-- prompts:sharding -->"
    assert lines[2] == (
        "### fsdp 4 → **16**, tensor 4 → **1**: 1.36× today's throughput "
        "(90 %: 1.28–1.46×), compiled"
    )
    assert "for commit `0123456789ab`" in lines[-1]


def test_what_does_not_fit_is_left_out_from_the_end_and_counted() -> None:
    whole = github_text(report_build.training())
    short = github_text(report_build.training(), limit=len(whole) - 1)
    assert len(short) < len(whole)
    assert "1 section does not fit" in short
    assert short.count("<details>") == short.count("</details>") == whole.count("<details>") - 1


def test_a_comment_is_never_longer_than_github_takes() -> None:
    report = report_build.training()
    many = report.model_copy(update={"caveats": tuple("x" * 1000 for _ in range(200))})
    assert len(github_text(many)) <= COMMENT_LIMIT
    assert len(github_text(report, limit=600)) <= 600


def test_names_are_shown_only_on_request() -> None:
    report = report_build.training()
    assert "jit_train_step" not in github_text(report).replace("\\", "")
    assert "jit_train_step" in github_text(report, redact=False).replace("\\", "")


@pytest.mark.parametrize("tag", ["", "a b", "x -->", "é", "a" * 65])
def test_a_tag_cannot_end_the_marker(tag: str) -> None:
    with pytest.raises(InputError, match="letters, digits"):
        marker(tag)


def test_the_marker_is_invisible() -> None:
    assert re.fullmatch(r"<!-- [\w:]+ -->", marker("sharding"))
