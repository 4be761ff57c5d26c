"""A report with two estimates that are simple enough to add up in one's head."""

from __future__ import annotations

from typing import Any

from prompts_agent.agents.report import (
    Baseline,
    Predicted,
    Proposal,
    RankFactors,
    Report,
    Verdict,
    WorkloadSummary,
)
from prompts_agent.estimate.calibration import Constant, Constants
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Mesh
from prompts_agent.model.catalog import find_model
from prompts_agent.workload.workload import Objective, Phase, Precision, Traffic

HBM = 16_000_000_000
TIMES = ("matmul_s", "attention_s", "tensor_exposed_s", "fsdp_exposed_s", "bubble_s")
HELD = ("weights_bytes", "activations_bytes", "workspace_bytes")
CONSTANTS = {
    name: Constant(value=0.5, source=f"by hand: {name}") for name in Constants.model_fields
}


def terms(times: tuple[float, ...], held: tuple[float, ...]) -> dict[str, float]:
    named = {f"time.{name}": value for name, value in zip(TIMES, times, strict=True)}
    return named | {f"memory.{name}": value for name, value in zip(HELD, held, strict=True)}


def proposal(rank: int, layout: Layout, held: dict[str, float], **more: Any) -> Proposal:
    step = sum(value for name, value in held.items() if name.startswith("time."))
    step = more.get("step_time_s", step)
    need = sum(value for name, value in held.items() if name.startswith("memory."))
    values: dict[str, Any] = {
        "step_time_s": step,
        "low_s": 0.8 * step,
        "high_s": 1.25 * step,
        "hbm_bytes": round(need),
        "hbm_limit_bytes": HBM,
        "tokens_per_s": 16 * 4096 / step,
    }
    return Proposal(
        rank=rank,
        layout=layout,
        changes=(),
        predicted=Predicted(**values),
        rung="estimated",
        verdict=Verdict(legal=True, fits=True),
        reasons=(),
        tradeoffs=(),
        terms=held,
        factors=RankFactors(fit_probability=0.9 if rank == 2 else 1.0, preference=1.0),
    )


def summary(phase: Phase = Phase.PRETRAIN, **more: Any) -> WorkloadSummary:
    return WorkloadSummary(
        name="a run by hand",
        model="llama2-7b",
        hardware="v5e:4x4",
        devices=16,
        phase=phase,
        objective=Objective.THROUGHPUT,
        global_batch=16,
        sequence=4096,
        dims=find_model("llama2-7b"),
        precision=Precision(),
        **more,
    )


def training() -> Report:
    """2 s against 2.5 s: tensor saves activations and costs waiting."""
    one = Layout(mesh=Mesh.of(fsdp=16), remat=Remat.FULL)
    two = Layout(mesh=Mesh.of(fsdp=4, tensor=4), microbatch=4, remat=Remat.MINIMAL)
    today = terms((1.5, 0.2, 1.2, 0.1, 0.0), (2e9, 9e9, 1e9))
    return Report(
        tool_version="0",
        workload=summary(),
        baseline=Baseline(
            layout=two, predicted_step_time_s=3.0, hbm_bytes=12 * 10**9, terms=today, source="hand"
        ),
        proposals=(
            proposal(1, one, terms((1.5, 0.2, 0.0, 0.3, 0.0), (2e9, 8e9, 1e9))),
            proposal(2, two, terms((1.2, 0.2, 1.0, 0.1, 0.0), (2e9, 6e9, 1e9))),
        ),
        constants=CONSTANTS,
    )


def serving() -> Report:
    """A decode step of 10 ms, scaled to a measured one: 8 ms of terms × 1.25."""
    held = {
        "serving.weights_s": 5e-3,
        "serving.kv_s": 2e-3,
        "serving.exposed_s": 0.0,
        "serving.overhead_s": 1e-3,
        "serving.tpot_s": 8e-3,
        "serving.ttft_s": 0.2,
        "memory.weights_bytes": 4e9,
        "memory.kv_cache_bytes": 2e9,
    }
    one = proposal(1, Layout(mesh=Mesh.of(data=4, tensor=4)), held, step_time_s=0.010)
    traffic = Traffic(input_tokens=1024, output_tokens=128)
    return Report(
        tool_version="0",
        workload=summary(Phase.DECODE, traffic=traffic),
        baseline=Baseline(layout=one.layout, scale=1.25, source="hand"),
        proposals=(one,),
        constants=CONSTANTS,
    )
