"""Explanations of reports whose sums are known."""

from __future__ import annotations

import json

import explain_build
import pytest
from golden_files import check_golden

from prompts_agent.agents.report import Report
from prompts_agent.errors import InputError
from prompts_agent.report.explain.difference import difference
from prompts_agent.report.explain.explanation import explanation
from prompts_agent.report.explain.page import explained


def page(report: Report, form: str = "text", width: int = 80, **asked: object) -> str:
    values = {"rank": 1, "diff": None} | asked
    return explained(report, format_name=form, width=width, **values)  # type: ignore[arg-type]


def test_the_terms_add_up_and_come_largest_first() -> None:
    times, memory = explanation(explain_build.training(), 1).sums
    assert times.total == pytest.approx(2.0)
    assert [term.name for term in times.terms[:3]] == [
        "time.matmul_s",
        "time.fsdp_exposed_s",
        "time.attention_s",
    ]
    assert sum(term.share for term in times.terms) == pytest.approx(1.0)
    assert (memory.total, memory.limit) == (11e9, 16e9)
    assert times.scale is None


def test_every_term_has_a_formula_and_a_source() -> None:
    for part in explanation(explain_build.training(), 1).sums:
        assert all(term.formula and term.source for term in part.terms)


def test_constants_without_effect_are_left_out() -> None:
    # A dense model in bf16 inside one slice: no experts, no narrow matmuls, no network.
    names = {one.name for one in explanation(explain_build.training(), 1).constants}
    assert "matmul_efficiency" in names
    assert not names & {"grouped_efficiency", "low_precision_efficiency", "network_efficiency"}


def test_a_measured_step_scales_the_sum() -> None:
    found = explanation(explain_build.serving(), 1)
    times = found.sums[0]
    assert times.title.startswith("Time per token")
    assert times.scale == pytest.approx(1.25)
    assert [term.name for term in found.others] == ["serving.ttft_s"]
    assert "1.250" in found.notes[0]


def test_the_difference_is_term_by_term_largest_first() -> None:
    found = difference(explain_build.training(), 1, 2)
    times, memory = found.sums
    assert [(line.name, round(line.difference, 6)) for line in times.lines] == [
        ("time.tensor_exposed_s", 1.0),
        ("time.matmul_s", -0.3),
        ("time.fsdp_exposed_s", -0.2),
    ]
    assert sum(line.difference for line in times.lines) == pytest.approx(2.5 - 2.0)
    assert times.same == ("attention",)
    assert [line.difference for line in memory.lines] == [-2e9]
    # 2.5 s ÷ 0.9 against 2 s: 39 % worse.
    assert "1.250 times the tokens per second of proposal 2" in found.verdict
    assert "38.9% worse" in found.verdict


def test_todays_layout_is_rank_0() -> None:
    found = difference(explain_build.training(), 1, 0)
    assert found.sums[0].second == 3.0
    assert found.verdict.startswith("By time alone proposal 1 reaches 1.500 times")
    assert explanation(explain_build.training(), 0).rank == 0


@pytest.mark.parametrize("width", [40, 80])
def test_text(width: int) -> None:
    text = page(explain_build.training(), width=width)
    assert max(map(len, text.splitlines())) <= width
    check_golden(f"explain.{width}.txt", text)


def test_text_of_serving() -> None:
    check_golden("explain.serving.txt", page(explain_build.serving()))


def test_text_of_a_difference() -> None:
    check_golden("explain.diff.txt", page(explain_build.training(), diff=(1, 2)))


def test_markdown() -> None:
    check_golden("explain.md", page(explain_build.training(), "markdown"))
    check_golden("explain.diff.md", page(explain_build.training(), "markdown", diff=(1, 2)))


def test_json() -> None:
    found = json.loads(page(explain_build.training(), "json"))
    assert found["sums"][0]["total"] == pytest.approx(2.0)
    apart = json.loads(page(explain_build.training(), "json", diff=(2, 1)))
    assert apart["sums"][0]["lines"][0]["difference"] == -1.0


def test_an_earlier_report_has_no_constants_and_says_so() -> None:
    old = explain_build.training().model_copy(update={"constants": {}})
    found = explanation(old, 1)
    assert not found.symbols
    assert "earlier version" in found.notes[0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"rank": 7}, "rank 7"),
        ({"diff": (1, 1)}, "does not differ from itself"),
        ({"diff": (1, 9)}, "rank 9"),
        ({"form": "github"}, "text, json or markdown"),
    ],
)
def test_wrong_questions_get_errors(asked: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        page(explain_build.training(), **asked)  # type: ignore[arg-type]


def test_a_report_without_proposals_says_so() -> None:
    with pytest.raises(InputError, match="makes none"):
        page(Report(tool_version="0", workload=explain_build.summary()))
    with pytest.raises(InputError, match="no workload"):
        page(Report(tool_version="0"))
