"""The simulated traces in examples/: each has a flaw that a diagnosis finds and proposes to cure.

Which flaw was planted is in the comment of the workload file beside each.
"""

from __future__ import annotations

from pathlib import Path

from prompts_agent.agents.graph import run_diagnosis
from prompts_agent.agents.report import Report
from prompts_agent.agents.request import DiagnoseRequest
from prompts_agent.layout.mesh import Axis
from prompts_agent.workload.yaml import load_workload

EXAMPLES = Path(__file__).parents[2] / "examples"


def report_of(name: str) -> Report:
    path = EXAMPLES / f"{name}.xplane.pb.gz"
    assert path.stat().st_size < 200_000
    report = run_diagnosis(DiagnoseRequest(paths=(path,)))
    # The job is read from the trace as it was written.
    meant = load_workload(path.with_name(f"{name}.yaml"))
    assert report.workload is not None
    assert report.workload.global_batch == meant.global_batch
    assert report.workload.sequence == meant.sequence
    assert report.trace is not None
    assert any("no device ran this" in caveat for caveat in report.trace.caveats)
    return report


def test_a_tensor_axis_that_is_too_large() -> None:
    report = report_of("v5e16-tensor-too-large")
    worst = report.findings[0]
    assert (worst.kind.value, worst.axis) == ("exposed_collective", "tensor")
    assert worst.share is not None
    assert worst.share > 0.3
    assert all(p.layout.mesh.size(Axis.TENSOR) < 16 for p in report.proposals)
    cited = {i for p in report.proposals for reason in p.reasons for i in reason.recipe_ids}
    assert "tensor-axis-too-large" in cited


def test_gathers_of_weights_that_too_few_tokens_hide() -> None:
    report = report_of("v6e64-fsdp-exposed")
    exposed = {f.title.split()[0] for f in report.findings if f.axis == "fsdp"}
    assert "all-gather" in {word.lower() for word in exposed}
    assert all(p.layout.mesh.size(Axis.FSDP) < 64 for p in report.proposals)
    cited = {i for p in report.proposals for reason in p.reasons for i in reason.recipe_ids}
    assert "fsdp-gather-cut-by-tensor" in cited


def test_kv_heads_that_several_ranks_hold() -> None:
    report = report_of("v5e16-kv-heads-split")
    assert "kv_heads_split" in {finding.kind.value for finding in report.findings}
    # 8 KV heads: attention over at most 8 ranks, the rest by replicas, requests or stages.
    for proposal in report.proposals:
        layout = proposal.layout
        assert layout.mesh.size(Axis.TENSOR) // layout.attention_data <= 8
    cited = {i for p in report.proposals for reason in p.reasons for i in reason.recipe_ids}
    assert cited & {"attention-data-parallel", "kv-heads-limit-the-tensor-axis"}
