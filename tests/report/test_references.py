"""Every mark on the page resolves."""

from __future__ import annotations

import report_build

from prompts_agent.agents.report import Reason
from prompts_agent.report.references import marks, references


def test_marks_of_a_reason() -> None:
    reason = Reason(text="t", fact_ids=("a",), recipe_ids=("b",), term_ids=("time.c_s",))
    assert marks(reason) == ["f:a", "r:b", "t:time.c_s"]


def test_everything_cited_resolves_once() -> None:
    found = {entry.mark: entry for entry in references(report_build.training())}
    assert len(found) == len(references(report_build.training()))
    assert found["f:step_time"].value == "2.14 s"
    assert found["r:fsdp-within-slice"].source == "https://jax-ml.github.io/scaling-book/training/"
    # 1.612 s × 0.02 = 32.2 ms
    assert found["t:time.tensor_exposed_s"].value.startswith("32.2 ms in proposal 1")


def test_what_does_not_resolve_says_so() -> None:
    report = report_build.training().model_copy(update={"evidence": ()})
    found = {entry.mark: entry for entry in references(report)}
    assert found["r:fsdp-within-slice"].value == "unknown"
