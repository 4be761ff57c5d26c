"""The same report is the same bytes, and reads back as the same report."""

from __future__ import annotations

import json

import pytest
import report_build
from golden_files import check_golden

from prompts_agent.agents.report import Report
from prompts_agent.report.json_text import json_text


@pytest.mark.parametrize("name", [*report_build.ALL, "hostile"])
def test_round_trip(name: str) -> None:
    report = {**report_build.ALL, "hostile": report_build.hostile}[name]()
    text = json_text(report)
    assert Report.model_validate_json(text) == report
    assert json_text(Report.model_validate_json(text)) == text


def test_golden() -> None:
    check_golden("training.json", json_text(report_build.training()))


def test_ascii_only_says_the_same() -> None:
    report = report_build.training()
    text = json_text(report, ascii_only=True)
    assert text.isascii()
    assert json.loads(text) == json.loads(json_text(report))


def test_control_characters_are_escaped() -> None:
    assert "\x1b" not in json_text(report_build.hostile())
