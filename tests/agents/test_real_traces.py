"""Diagnoses of traces of public jobs, against what was worked out from their raw events."""

from __future__ import annotations

from pathlib import Path

import pytest

from prompts_agent.agents.graph import run_diagnosis
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.knowledge.vocabulary import FindingKind

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cpu8-train.xplane.pb.gz"


@pytest.mark.real_traces
def test_host_offload_is_answered_without_a_mesh(real_traces: Path) -> None:
    # 76.05 s of the capture's 100 runs of 784.1 ms are waits for host memory: 760 ms a step.
    path = real_traces / "tpu-v6e-host-offload.xplane.pb"
    report = run_diagnosis(DiagnoseRequest(paths=(path,)))
    assert report.abstained is not None
    assert report.abstained.kind == "not_sharding"
    assert "760 ms" in report.abstained.text
    assert report.proposals == ()
    assert report.findings[0].kind is FindingKind.HOST_TRANSFER
    assert report.findings[0].share == pytest.approx(76.05 / 78.41, rel=0.01)


@pytest.mark.real_traces
def test_an_all_reduce_of_a_data_parallel_job_is_found_beside_its_idle_time(
    real_traces: Path,
) -> None:
    # 39.6 ms exposed in three steps.
    path = real_traces / "kineto-a100-ddp.json.gz"
    report = run_diagnosis(DiagnoseRequest(paths=(path,)))
    exposed = [f for f in report.findings if f.kind is FindingKind.EXPOSED_COLLECTIVE]
    assert exposed[0].seconds_per_step == pytest.approx(0.0396 / 3, rel=0.05)


def test_the_example_shows_its_flaw_once_it_has_a_target() -> None:
    # The example's mesh is data 2 × model 4, and its model has two KV heads.
    alone = run_diagnosis(DiagnoseRequest(paths=(EXAMPLE,)))
    assert alone.abstained is not None
    assert alone.abstained.kind == "cannot_tell"
    assert any("--target" in step for step in alone.abstained.next_steps)
    report = run_diagnosis(DiagnoseRequest(paths=(EXAMPLE,), target="v5e:2x4"))
    assert any(f.kind is FindingKind.KV_HEADS_SPLIT for f in report.findings)
    assert report.proposals[0].layout.mesh.used() != {}
    assert all(f.seconds_per_step is None for f in report.findings)
    assert report.baseline is not None
    assert report.baseline.measured_step_time_s is None
