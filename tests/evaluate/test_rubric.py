"""The rubric on forty public workloads, and on reports that somebody spoiled in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prompts_agent.agents.graph import run_plan
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.evaluate.rubric import faults
from prompts_agent.workload.yaml import load_workload

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "workloads").rglob("*.yaml"))
FORTY = FILES[:: len(FILES) // 40][:40]
STORED = ROOT / "tests" / "report" / "golden" / "training.json"


@pytest.mark.parametrize("path", FORTY, ids=lambda path: path.stem)
def test_every_report_passes(path: Path) -> None:
    report = run_plan(DiagnoseRequest(workload=load_workload(path)))
    assert report.proposals or report.abstained
    assert faults(report) == ()


def test_there_are_forty() -> None:
    assert len(set(FORTY)) == 40


@pytest.fixture(scope="module")
def report() -> Report:
    path = ROOT / "workloads" / "example-llama3-8b-v5e.yaml"
    return run_plan(DiagnoseRequest(workload=load_workload(path)))


def first(report: Report, **changed: Any) -> Report:
    best = report.proposals[0].model_copy(update=changed)
    return report.model_copy(update={"proposals": (best, *report.proposals[1:])})


def with_reason(report: Report, text: str) -> Report:
    reason = report.proposals[0].reasons[0].model_copy(update={"text": text})
    return first(report, reasons=(reason,))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda r: first(r, tradeoffs=()), "names no trade-off"),
        (lambda r: first(r, reasons=()), "gives no reason"),
        (lambda r: with_reason(r, "It saves 123 ms."), "123 ms has no source"),
        (lambda r: with_reason(r, "It saves 12.3 GB."), "12.3 GB has no source"),
        (lambda r: with_reason(r, "It is 3.33× as fast."), "3.33 × has no source"),
        (lambda r: with_reason(r, "It makes 98,765 tokens/s."), "98,765 tokens/s has no source"),
        (lambda r: with_reason(r, "It wastes 41 % of it."), "41 % has no source"),
        (lambda r: with_reason(r, "It has 31337 ranks."), "31337 has no source"),
    ],
)
def test_what_is_spoiled_is_found(
    report: Report, spoil: Callable[[Report], Report], said: str
) -> None:
    assert faults(report) == ()
    assert any(said in line for line in faults(spoil(report)))


def test_words_that_contradict_the_layout_are_found(report: Report) -> None:
    moved = next(
        change
        for change in report.proposals[0].changes
        if change.what in ("tensor", "fsdp") and change.direction in ("raise", "lower")
    )
    opposite = "Lowers" if moved.direction == "raise" else "Raises"
    spoiled = with_reason(report, f"{opposite} the {moved.what} axis to fit.")
    assert any(f"the {moved.what} axis" in line for line in faults(spoiled))


def test_a_finding_needs_its_facts_and_a_word() -> None:
    report = Report.model_validate_json(STORED.read_bytes())
    finding = report.findings[0].model_copy(update={"detail": " ", "fact_ids": ("no.such",)})
    lines = faults(report.model_copy(update={"findings": (finding,)}))
    assert f"finding {finding.id}: its facts are not in the report" in lines
    assert f"finding {finding.id}: nothing is said about it" in lines
