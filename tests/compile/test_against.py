from __future__ import annotations

import pytest
from compile_build import layout, llama

from prompts_agent.compile.against import Gap, gaps
from prompts_agent.compile.outcome import CompiledFit, Outcome
from prompts_agent.compile.schedule.records import CompiledCollective, Schedule
from prompts_agent.estimate.estimator import estimate
from prompts_agent.layout.table import LayoutTable

JOB, CUT = llama(), layout(fsdp=16)


def fit(need: int, step_s: float, exposed_s: float = 0.4) -> CompiledFit:
    use = CompiledCollective(
        kind="all-gather", axis="fsdp", group_size=16, count=1, bytes=1, total_s=1.0,
        exposed_s=exposed_s,
    )  # fmt: skip
    schedule = Schedule(
        clock="", step_time_s=step_s, by_cycles_s=None, by_roofline_s=step_s, compute_s=1.0,
        exposed_collectives_s=exposed_s, exposed_host_s=0.0, exposed_memory_s=0.0,
        matmul_flops=1.0, collectives=(use,), loops=(), generated=False,
    )  # fmt: skip
    return CompiledFit(outcome=Outcome.FITS, hbm_need_bytes=need, schedule=schedule)


def test_a_gap_above_a_quarter_is_large_either_way() -> None:
    near = Gap(what="a step", unit="seconds", estimated=1.2, compiled=1.0)
    assert near.ratio == pytest.approx(0.2)
    assert not near.large
    assert near.sentence() == "A step: estimated 1.20 s, compiled 1.00 s (+20%)."
    assert Gap(what="x", unit="bytes", estimated=1.3, compiled=1.0).large
    assert Gap(what="x", unit="bytes", estimated=0.7, compiled=1.0).large
    assert "trust the compiler" in Gap(what="x", unit="bytes", estimated=2, compiled=1).sentence()
    step = Gap(what="a step", unit="seconds", estimated=2.0, compiled=1.0)
    assert "measure before you trust either" in step.sentence()
    # Nothing was compiled where something was expected.
    assert Gap(what="x", unit="bytes", estimated=1.0, compiled=0.0).large


def test_memory_step_and_axes_beside_the_estimate() -> None:
    row = estimate(LayoutTable.of([CUT]), JOB)
    found = {gap.what: gap for gap in gaps(fit(9_000_000_000, 1.8), CUT, JOB)}
    assert set(found) == {"HBM of a device", "a step", "exposed on fsdp"}
    assert found["HBM of a device"].estimated == float(row.hbm_bytes[0])
    assert found["a step"].estimated == float(row.step_time_s[0])
    assert found["exposed on fsdp"].estimated == float(row.terms["time.fsdp_exposed_s"][0])
    # What compute hides moves between the two: no verdict on it.
    assert not found["exposed on fsdp"].large


def test_a_pipeline_s_step_is_not_compared() -> None:
    cut = layout(pipeline=4, fsdp=4, gradient_accumulation=4)
    assert [gap.what for gap in gaps(fit(1, 100.0), cut, JOB)] == ["HBM of a device"]


def test_decoding_is_compared_without_what_a_server_does_between_steps() -> None:
    job, cut = llama(phase="decode"), layout(tensor=16)
    row = estimate(LayoutTable.of([cut]), job)
    tpot, overhead = (float(row.terms[f"serving.{name}_s"][0]) for name in ("tpot", "overhead"))
    step = {gap.what: gap for gap in gaps(fit(1, 0.01), cut, job)}["a step"]
    assert step.estimated == pytest.approx(tpot - overhead)


def test_without_a_need_there_is_nothing_to_compare() -> None:
    assert gaps(CompiledFit(outcome=Outcome.REFUSED), CUT, JOB) == ()
