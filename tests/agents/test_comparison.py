"""Two traces of one job: lined up, compared in seconds, held against a prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents_build import layout, profile, steps, workload
from compare_build import write_trace
from hypothesis import given as hypothesis_given
from hypothesis import settings
from hypothesis import strategies as st

from prompts_agent.agents.comparison.compare import compare, compare_traces
from prompts_agent.agents.comparison.comparison import Comparison
from prompts_agent.agents.comparison.outcome import planned_job
from prompts_agent.agents.comparison.side import Given, side_of
from prompts_agent.agents.graph import run_diagnosis
from prompts_agent.agents.report import (
    Baseline,
    Predicted,
    Proposal,
    Report,
    Verdict,
    WorkloadSummary,
)
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.errors import InputError, NotDiagnosableError
from prompts_agent.hardware.topology import parse_topology
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.mesh import Axis
from prompts_agent.report.comparison.console import comparison_text
from prompts_agent.report.comparison.markdown import comparison_markdown
from prompts_agent.trace.profile import Breakdown, TraceFile

US = 1e-6


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """Steps of 600 µs of compute, 300 of all-reduce over tensor 4, 100 idle."""
    return write_trace(tmp_path / "before.xplane.pb")


def after(tmp_path: Path, **changes: Any) -> Path:
    """Tensor halved: the all-reduce takes 100 µs."""
    values: dict[str, Any] = {"data": 4, "model": 2, "reduce": 100.0}
    return write_trace(tmp_path / "after.xplane.pb", **(values | changes))


def given(path: Path, **flags: Any) -> Given:
    return Given(request=DiagnoseRequest(paths=(path,), **flags))


def compared(one: Path, two: Path, **more: Any) -> Comparison:
    return compare_traces(given(one), given(two), **more)


def test_what_changed_in_seconds(before: Path, tmp_path: Path) -> None:
    found = compared(before, after(tmp_path))
    assert found.alike
    assert found.direction == "faster"
    assert found.gain == pytest.approx(1000 / 800)
    assert found.step.change_s == pytest.approx(-200 * US)
    parts = {part.what: part.change_s for part in found.parts}
    assert parts["exposed collective"] == pytest.approx(-200 * US)
    assert sum(value or 0.0 for value in parts.values()) == pytest.approx(-200 * US)
    first = found.findings[0]
    assert (first.kind, first.found) == (FindingKind.EXPOSED_COLLECTIVE, "both")
    assert first.axes == (Axis.TENSOR,)
    assert (first.before_s, first.after_s) == (pytest.approx(300 * US), pytest.approx(100 * US))
    assert [(c.what, c.before, c.after) for c in found.changes] == [
        ("data", "2", "4"),
        ("tensor", "4", "2"),
    ]
    # Tensor 4 over 2 KV heads held each twice; tensor 2 does not.
    gone = {item.kind: item.found for item in found.findings}
    assert gone[FindingKind.KV_HEADS_SPLIT] == "before"


def test_a_finding_that_fell_below_its_threshold_keeps_its_seconds(
    before: Path, tmp_path: Path
) -> None:
    # 10 µs of 710 are 1.4%: below the 2% at which an exposed collective is a finding.
    found = compared(before, after(tmp_path, reduce=10.0))
    first = found.findings[0]
    assert (first.found, first.after_s) == ("before", pytest.approx(10 * US))
    assert first.change_s == pytest.approx(-290 * US)


def test_the_noise_floor_is_the_spread_of_the_steps(before: Path, tmp_path: Path) -> None:
    # Gaps grow by 0, 60, 0, 60 ... µs: periods of 1000 and 1060. Eight runs, six kept, so the
    # range counts: 60 µs ÷ 2.534 (expected range of six normal values) = 23.68 µs each.
    one = write_trace(tmp_path / "one.xplane.pb", jitter=(0.0, 60.0))
    two = write_trace(tmp_path / "two.xplane.pb", jitter=(0.0, 60.0), compute=630.0)
    found = compared(one, two)
    assert found.before.spread_s == pytest.approx(60 * US / 2.534)
    assert found.noise.floor_s == pytest.approx(2**0.5 * 60 * US / 2.534)  # 33.5 µs > 30
    assert found.step.change_s == pytest.approx(30 * US)
    assert found.direction == "within_noise"
    compute = found.parts[0]
    assert (compute.what, compute.within_noise) == ("compute", True)


def test_steady_steps_do_not_make_a_permille_a_change(before: Path, tmp_path: Path) -> None:
    # Without any spread 1% of the step is the floor: 10 of 1000 µs.
    found = compared(before, write_trace(tmp_path / "b.xplane.pb", compute=605.0))
    assert found.noise.floor_s == pytest.approx(10 * US)
    assert found.direction == "within_noise"


def test_two_steps_tell_no_noise(tmp_path: Path, before: Path) -> None:
    few = write_trace(tmp_path / "few.xplane.pb", data=4, model=2, reduce=100.0, steps=2)
    found = compared(before, few)
    assert found.noise.floor_s is None
    assert found.direction == "unknown"
    assert found.step.within_noise is None
    assert found.step.change_s == pytest.approx(-200 * US)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"layers": 6}, "model"),
        ({"label": "TPU v5 lite"}, "chip"),
        ({"batch": 32}, "global batch"),
        ({"data": 8, "model": 2}, "devices"),
    ],
)
def test_another_job_is_said_to_be_one(
    before: Path, tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    found = compared(before, after(tmp_path, **changes))
    assert not found.alike
    assert [item.what for item in found.likeness if item.same is False] == [what]


def test_another_batch_is_compared_by_tokens(before: Path, tmp_path: Path) -> None:
    # Twice the tokens in 1.6 times the step: 1600 µs against 1000.
    found = compared(before, after(tmp_path, batch=32, compute=1400.0))
    assert found.step.after_s == pytest.approx(1600 * US)
    assert found.gain == pytest.approx(2 / 1.6)


def report(**predicted: Any) -> Report:
    """Proposes data 4 × tensor 2 for the job that ran as data 2 × tensor 4."""
    values: dict[str, Any] = {
        "step_time_s": 850 * US,
        "low_s": 700 * US,
        "high_s": 1000 * US,
        "hbm_bytes": 1,
        "hbm_limit_bytes": 2,
        "speedup": 1.2,
        "speedup_low": 1.0,
        "speedup_high": 1.5,
    }
    guess = Predicted.model_validate(values | predicted)
    shapes = (layout(data=4, tensor=2), layout(data=8), layout(fsdp=4, tensor=2))
    return Report(
        tool_version="1",
        baseline=Baseline(layout=layout(data=2, tensor=4), source="by hand"),
        proposals=tuple(
            Proposal(
                rank=rank,
                layout=shape,
                changes=(),
                predicted=guess,
                rung="estimated",
                verdict=Verdict(legal=True, fits=True),
                reasons=(),
                tradeoffs=(),
            )
            for rank, shape in enumerate(shapes, start=1)
        ),
    )


def test_how_far_the_prediction_was_off(before: Path, tmp_path: Path) -> None:
    found = compared(before, after(tmp_path), report=report()).outcome
    assert found is not None
    assert found.not_scored is None
    assert found.rank == 1  # the only one with that mesh
    assert found.measured_gain == pytest.approx(1.25)
    assert found.gain_error == pytest.approx(1.25 / 1.2 - 1)
    assert found.step_error == pytest.approx(800 / 850 - 1)
    assert found.inside is True
    outside = compared(before, after(tmp_path), report=report(speedup_high=1.2)).outcome
    assert outside is not None
    assert outside.inside is False


def test_a_report_of_another_trace_is_said(before: Path, tmp_path: Path) -> None:
    other = TraceFile(sha256="0" * 64, format="xspace", files=1, size_bytes=1)
    found = compared(before, after(tmp_path), report=report().model_copy(update={"trace": other}))
    assert any("another trace than BEFORE" in text for text in found.caveats)
    assert found.outcome is not None
    assert found.outcome.not_scored is None


def test_a_prediction_of_another_mesh_is_not_scored(before: Path, tmp_path: Path) -> None:
    found = compared(before, after(tmp_path), report=report(), rank=2).outcome
    assert found is not None
    assert found.gain_error is None
    assert found.inside is None
    assert found.not_scored == (
        "the mesh that ran after is data 4 × tensor 2, not the proposal's data 8"
    )


def test_which_proposal_was_followed_is_not_guessed(before: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data 2 × tensor 4.*proposals 1, 2, 3\. Say which"):
        compared(before, before, report=report())
    with pytest.raises(InputError, match=r"rank 4.*are 1, 2, 3"):
        compared(before, after(tmp_path), report=report(), rank=4)
    empty = report().model_copy(update={"proposals": ()})
    with pytest.raises(InputError, match="holds no proposal"):
        compared(before, before, report=empty)


def test_the_report_of_another_job_scores_nothing(before: Path, tmp_path: Path) -> None:
    summary = WorkloadSummary(
        name="x", model="x", hardware="v6e:2x4", devices=8, phase="pretrain",
        objective="throughput", global_batch=64, sequence=256,
    )  # fmt: skip
    other = report().model_copy(update={"workload": summary})
    found = compared(before, after(tmp_path), report=other).outcome
    assert found is not None
    assert found.not_scored is not None
    assert "batch of 64 × 256 tokens" in found.not_scored
    assert planned_job(other) is None  # no dims


def test_a_trace_without_times_cannot_be_compared(before: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "cpu8-train.xplane.pb.gz"
    with pytest.raises(NotDiagnosableError, match="AFTER: its devices are virtual"):
        compared(before, example)


def test_the_same_trace_twice_is_said(before: Path) -> None:
    found = compared(before, before)
    assert found.direction == "within_noise"
    assert "BEFORE and AFTER are the same trace." in found.caveats


def test_a_job_that_is_given_wrongly_is_said(before: Path, tmp_path: Path) -> None:
    wrong = workload(topology=parse_topology("v6e:2x4"), global_batch=64, sequence=256)
    found = compare_traces(given(before, workload=wrong), given(after(tmp_path)))
    said = [text for text in found.caveats if text.startswith("Of the job, ")]
    assert any("the global batch is 64 by the job that was given, and 16 by" in x for x in said)
    assert any("the model is" in x for x in said)
    assert not any("sequence" in x for x in said)


def test_a_profile_that_was_stored_stands_for_its_trace(before: Path, tmp_path: Path) -> None:
    stored = run_diagnosis(DiagnoseRequest(paths=(before,)))
    assert stored.profile is not None
    one = Given(request=DiagnoseRequest(), profile=stored.profile, trace=stored.trace)
    assert compare_traces(one, given(after(tmp_path))) == compared(before, after(tmp_path))


part = st.none() | st.floats(0.0, 10.0)


@settings(max_examples=40, deadline=None)
@hypothesis_given(
    parts=st.lists(part, min_size=10, max_size=10), steps_s=st.tuples(*[st.floats(1e-6, 1e3)] * 2)
)
def test_whatever_was_measured_the_changes_are_differences(
    parts: list[float | None], steps_s: tuple[float, float]
) -> None:
    names = ("compute_s", "exposed_collective_s", "host_transfer_s", "input_s", "idle_s")
    sides = [
        side_of(
            Given(
                request=DiagnoseRequest(),
                profile=profile(
                    step=steps(period_s=step_s),
                    breakdown=Breakdown(**dict(zip(names, some, strict=True))),
                ),
            ),
            "X",
        )
        for step_s, some in zip(steps_s, (parts[:5], parts[5:]), strict=True)
    ]
    found = compare(*sides)
    assert Comparison.model_validate_json(found.model_dump_json()) == found
    for item in (*found.parts, *found.findings, found.step):
        if item.before_s is None or item.after_s is None:
            assert item.change_s is None
        else:
            assert item.change_s == item.after_s - item.before_s
    assert comparison_text(found).endswith("\n")
    assert comparison_markdown(found).count("| step |") == 1
