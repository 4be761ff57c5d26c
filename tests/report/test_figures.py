"""Figures, worked out by hand."""

from __future__ import annotations

import report_build

from prompts_agent.agents.report import Predicted, Verdict
from prompts_agent.layout.layout import Layout
from prompts_agent.layout.mesh import Mesh
from prompts_agent.report import figures


def predicted(**changes: float | None) -> Predicted:
    first = report_build.proposals()[0].predicted
    return first.model_copy(update=changes)


def test_share_never_prints_something_as_nothing() -> None:
    assert figures.share(0.1873) == "19 %"
    assert figures.share(0.002) == "<1 %"
    assert figures.share(0.0) == "0 %"


def test_interval_shares_its_unit() -> None:
    assert figures.step_time(predicted(step_time_s=1.6, low_s=1.5, high_s=1.75)) == (
        "1.60 s",
        "1.50–1.75 s",
    )
    assert figures.step_time(predicted(step_time_s=1.0, low_s=0.9, high_s=1.1)) == (
        "1.00 s",
        "900 ms–1.10 s",
    )
    assert figures.step_time(predicted(step_time_s=None)) == ("unknown", "")


def test_speedup_of_an_unknown_baseline_is_unknown() -> None:
    assert figures.speedup(predicted(speedup=None)) == ("unknown", "")
    assert figures.speedup(predicted(speedup=1.5, speedup_low=1.4, speedup_high=1.61)) == (
        "1.50×",
        "1.40–1.61×",
    )


def test_title_marks_domains_and_divided_experts() -> None:
    mesh = Mesh.model_validate({"fsdp": {"ici": 8, "dcn": 2}, "data": {"dcn": 4}, "tensor": 4})
    assert figures.title(Layout(mesh=mesh)) == "data 4 (DCN) × fsdp 16 (8×2 DCN) × tensor 4"
    divided = Layout(mesh=Mesh.of(tensor=8, expert=8), expert_divides=True)
    assert figures.title(divided) == "÷expert 8 × tensor 8"
    assert figures.title(Layout(mesh=Mesh.of())) == "one device"


def test_headline_is_the_answer() -> None:
    assert figures.headline(report_build.training()) == (
        "fsdp 16 is predicted at 1.36× today's throughput (90%: 1.28–1.46×)"
    )
    assert figures.headline(report_build.plan()) == (
        "fsdp 16 is predicted at 1.61 s a step (90%: 1.50–1.74 s)"
    )
    assert figures.headline(report_build.not_sharding()) == "It is not sharding"


def test_key_checks_keep_what_decides() -> None:
    checks = ("a", "b", "c", "d", "memory at most 1 GB", "e")
    shown, more = figures.key_checks(Verdict(legal=True, fits=True, checks=checks))
    assert shown == ("a", "b", "c", "memory at most 1 GB")
    assert more == 2


def test_terms_are_the_parts_of_the_step_largest_first() -> None:
    terms = figures.step_terms(report_build.proposals()[0])
    assert [name for name, _ in terms] == ["matmul", "fsdp exposed", "tensor exposed"]
