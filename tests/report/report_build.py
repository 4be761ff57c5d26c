"""Reports as the agents would make them, written by hand, so that renderers are tested alone."""

from __future__ import annotations

from prompts_agent.agents.finding import Finding
from prompts_agent.agents.report import (
    Abstention,
    Baseline,
    Change,
    Config,
    Predicted,
    Proposal,
    Reason,
    Rejection,
    Report,
    Rung,
    Search,
    Verdict,
    WorkloadSummary,
)
from prompts_agent.knowledge.evidence import Evidence
from prompts_agent.knowledge.vocabulary import FindingKind
from prompts_agent.layout.layout import Layout, Remat
from prompts_agent.layout.mesh import Mesh
from prompts_agent.trace.profile import (
    Breakdown,
    CollectiveKind,
    CollectiveUse,
    Fact,
    MeshAxisUse,
    OpUse,
    Profile,
    StepTimes,
    TraceFile,
)
from prompts_agent.workload.workload import Objective, Phase

HBM_V5E = 16_000_000_000
TRACE = TraceFile(
    sha256="3f2a9c1b04de77ab9f0e5d2c6b8a1f43e0d9c8b7a6f5e4d3c2b1a09f8e7d6c5b",
    format="xspace",
    files=2,
    size_bytes=48_300_000,
    caveats=("Two of the four hosts wrote a trace; the others are assumed to be like them.",),
)
STEP_FACT = Fact(
    id="step_time",
    name="step time",
    value=2.136,
    unit="s",
    source="XLA Modules line of /device:TPU:0, median of 18 runs of jit_train_step",
)


def fact(fact_id: str, value: float | str, unit: str, source: str) -> Fact:
    return Fact(id=fact_id, name=fact_id.replace(".", " "), value=value, unit=unit, source=source)


def training_profile() -> Profile:
    """Two thirds of the step computes; 19 % waits for the all-reduce of the tensor axis."""
    reduce = "collective.all-reduce.tensor"
    line = "XLA Ops line of /device:TPU:0"
    return Profile(
        device_kind="v5e",
        device_label="TPU v5 lite",
        devices_in_trace=8,
        devices_in_job=16,
        hosts=2,
        step=StepTimes(
            median_s=2.136,
            min_s=2.120,
            max_s=2.171,
            count=18,
            period_s=2.200,
            program="jit_train_step",
            derived_from="XLA Modules",
        ),
        breakdown=Breakdown(
            compute_s=1.430,
            exposed_collective_s=0.530,
            host_transfer_s=0.0,
            input_s=0.176,
            idle_s=0.064,
        ),
        mesh=(MeshAxisUse(name="fsdp", size=4), MeshAxisUse(name="tensor", size=4)),
        mesh_source="axis names in op_name metadata",
        collectives=(
            CollectiveUse(
                kind=CollectiveKind.ALL_REDUCE,
                axis="tensor",
                group_size=4,
                bytes=8_589_934_592,
                count=128,
                total_s=0.530,
                exposed_s=0.412,
                ops=("all-reduce.1",),
            ),
        ),
        top_ops=(
            OpUse(name="fusion.12", category="matmul", count=32, total_s=0.61, share=0.277),
            OpUse(name="all-reduce.1", category="collective", count=128, total_s=0.41, share=0.187),
        ),
        hbm_peak_bytes=13_100_000_000,
        hbm_capacity_bytes=HBM_V5E,
        facts=(
            STEP_FACT,
            fact(f"{reduce}.exposed", 0.412, "s", f"-done waits on the {line}"),
            fact(f"{reduce}.total", 0.530, "s", f"all-reduce over tensor on the {line}"),
            fact("breakdown.input", 0.176, "s", "infeed waits of /device:TPU:0"),
            fact("hbm_peak", 13_100_000_000, "bytes", "memory profile of /device:TPU:0"),
        ),
        missing=("No host plane: what the input pipeline does between steps cannot be seen.",),
    )


def findings() -> tuple[Finding, ...]:
    reduce = "collective.all-reduce.tensor"
    return (
        Finding(
            id="exposed_collective.all-reduce.tensor",
            kind=FindingKind.EXPOSED_COLLECTIVE,
            title="all-reduce over tensor is exposed for 412 ms of each step",
            detail="Of 530 ms in this collective, 412 ms is hidden under no compute. A smaller "
            "axis, fewer bytes per device or more compute per step would shrink it.",
            seconds_per_step=0.412,
            share=0.1873,
            is_sharding=True,
            axis="tensor",
            fact_ids=(f"{reduce}.exposed", f"{reduce}.total", "step_time"),
        ),
        Finding(
            id="input_bound",
            kind=FindingKind.INPUT_BOUND,
            title="The device waits 176 ms of each step for the next batch",
            detail="Prefetch the next batch to the device, or raise the loader's workers.",
            seconds_per_step=0.176,
            share=0.08,
            is_sharding=False,
            fact_ids=("breakdown.input",),
        ),
    )


def proposal(
    rank: int, layout: Layout, step_s: float, speedup: float, *, hbm: float, rung: Rung
) -> Proposal:
    before = Mesh.of(fsdp=4, tensor=4)
    changes = [
        Change(
            what=axis.value,
            before=str(before.size(axis)),
            after=str(size.size),
            direction="raise" if size.size > before.size(axis) else "lower",
        )
        for axis, size in layout.mesh.root.items()
        if size.size != before.size(axis)
    ]
    if layout.remat is not Remat.FULL:
        changes.append(Change(what="remat", before="full", after=layout.remat.value))
    return Proposal(
        rank=rank,
        layout=layout,
        changes=tuple(changes),
        predicted=Predicted(
            step_time_s=step_s,
            low_s=step_s * 0.93,
            high_s=step_s * 1.08,
            hbm_bytes=int(hbm * 1e9),
            hbm_limit_bytes=HBM_V5E,
            tokens_per_s=64 * 8192 / step_s,
            speedup=speedup,
            speedup_low=speedup * 0.94,
            speedup_high=speedup * 1.07,
        ),
        rung=rung,
        verdict=Verdict(
            legal=True,
            fits=True,
            checks=(
                "product of axes 16 = 16 devices",
                f"32 heads ÷ tensor {layout.mesh.root['tensor'].size}",  # type: ignore[index]
                f"{hbm:.1f} GB ≤ 16.0 GB of HBM",
            ),
            rung=rung,
        ),
        reasons=(
            Reason(
                text="A smaller tensor axis answers the exposed all-reduce of 412 ms.",
                fact_ids=("collective.all-reduce.tensor.exposed", "step_time"),
                term_ids=("time.tensor_exposed_s",),
            ),
            Reason(
                text="Dense models of this size train fastest with fsdp alone inside one slice.",
                recipe_ids=("fsdp-within-slice",),
            ),
        ),
        tradeoffs=(
            "Weights are gathered once more per step: +96.0 MB/s of ICI traffic.",
            "The step gets more sensitive to a small batch.",
        ),
        terms={
            "time.matmul_s": step_s * 0.84,
            "time.tensor_exposed_s": step_s * 0.02,
            "time.fsdp_exposed_s": step_s * 0.14,
            "memory.total_bytes": hbm * 1e9,
        },
    )


def proposals() -> tuple[Proposal, ...]:
    first = proposal(1, Layout(mesh=Mesh.of(fsdp=16)), 1.612, 1.36, hbm=14.2, rung="compiled")
    config = Config(
        framework="jax",
        language="python",
        text='import jax\n\nmesh = jax.make_mesh((16,), ("fsdp",))\n',
        check_command="python layout.py",
        notes=("Written for jax 0.9 or later.",),
    )
    return (
        first.model_copy(update={"config": config}),
        proposal(
            2, Layout(mesh=Mesh.of(fsdp=8, tensor=2)), 1.744, 1.26, hbm=13.6, rung="estimated"
        ),
        proposal(
            3,
            Layout(mesh=Mesh.of(data=2, fsdp=8), remat=Remat.MINIMAL, microbatch=2),
            1.801,
            1.22,
            hbm=15.7,
            rung="estimated",
        ),
    )


def summary() -> WorkloadSummary:
    return WorkloadSummary(
        name="train_step",
        model="llama3.1-8b",
        hardware="v5e:4x4",
        devices=16,
        phase=Phase.PRETRAIN,
        objective=Objective.THROUGHPUT,
        global_batch=64,
        sequence=8192,
        assumptions=("Adam with fp32 master weights, as no optimizer state was seen.",),
    )


def baseline() -> Baseline:
    return Baseline(
        layout=Layout(mesh=Mesh.of(fsdp=4, tensor=4)),
        measured_step_time_s=2.2,
        predicted_step_time_s=2.05,
        hbm_bytes=13_100_000_000,
        source="the trace",
    )


def training() -> Report:
    """Training on v5e: two findings, three proposals, one of them compiled."""
    return Report(
        tool_version="0.1.0",
        trace=TRACE,
        profile=training_profile(),
        workload=summary(),
        baseline=baseline(),
        findings=findings(),
        evidence=(
            Evidence(
                recipe_id="fsdp-within-slice",
                title="Prefer fsdp alone while the weights' gather hides under compute",
                score=0.93,
                source="https://jax-ml.github.io/scaling-book/training/",
                reasons=("the phase is pretrain", "the finding is exposed_collective"),
            ),
            Evidence(
                recipe_id="tensor-needs-width",
                title="Keep tensor below the width at which its all-reduce shows",
                score=0.71,
                source="https://arxiv.org/abs/1909.08053",
                reasons=("the axis is tensor",),
            ),
        ),
        proposals=proposals(),
        rejected=(
            Rejection(
                layout=Layout(mesh=Mesh.of(data=16)),
                round=1,
                reasons=("96.4 GB of weights and optimizer state on a device of 16.0 GB",),
            ),
        ),
        search=Search(legal=412, fit=97, considered=640),
        caveats=("Bandwidth of v5e links is the data sheet's, not this job's.",),
        other_objective="For latency, fsdp 8 × tensor 2 would come first.",
    )


def not_sharding() -> Report:
    """The step waits for input; no mesh would help."""
    report = training()
    profile = training_profile().model_copy(
        update={
            "breakdown": Breakdown(
                compute_s=0.9, exposed_collective_s=0.05, input_s=1.25, host_transfer_s=None
            ),
        }
    )
    input_bound = findings()[1].model_copy(
        update={
            "title": "The device waits 1.25 s of each step for the next batch",
            "seconds_per_step": 1.25,
            "share": 0.568,
        }
    )
    return report.model_copy(
        update={
            "profile": profile,
            "findings": (input_bound,),
            "proposals": (),
            "rejected": (),
            "evidence": (),
            "search": None,
            "other_objective": None,
            "abstained": Abstention(
                kind="not_sharding",
                text="The device waits 1.25 s of each step for the next batch. That is most of "
                "what is lost, and no mesh would cure it.",
                next_steps=(
                    "Prefetch the next batch to the device, or raise the loader's workers.",
                    "Take a new trace afterwards: what is left may be a matter of sharding.",
                ),
            ),
        }
    )


def cannot_tell() -> Report:
    """A trace with host events only."""
    profile = Profile(
        device_kind=None,
        device_label="host only",
        devices_in_trace=0,
        devices_in_job=None,
        hosts=1,
        step=None,
        breakdown=Breakdown(),
        missing=(
            "No device plane: step time, collectives and memory cannot be seen.",
            "No HLO: the model and its mesh cannot be inferred.",
        ),
    )
    return Report(
        tool_version="0.1.0",
        trace=TRACE.model_copy(update={"files": 1, "size_bytes": 81_200, "caveats": ()}),
        profile=profile,
        findings=(
            Finding(
                id="trace_too_poor",
                kind=FindingKind.TRACE_TOO_POOR,
                title="The trace holds no device",
                detail="Capture with jax.profiler.start_trace around at least three steps.",
                is_sharding=False,
                fact_ids=(),
            ),
        ),
        abstained=Abstention(
            kind="cannot_tell",
            text="This input does not say enough about the job to plan a mesh for it.",
            next_steps=("Give --model and --target.", "Capture a trace that has a device plane."),
        ),
    )


def structure_only() -> Report:
    """Eight CPU devices: the mesh is real, no time is."""
    report = training()
    profile = training_profile().model_copy(
        update={
            "device_kind": "cpu",
            "device_label": "cpu",
            "structure_only": True,
            "step": None,
            "breakdown": Breakdown(),
            "facts": (),
            "collectives": (),
            "devices_in_trace": 8,
            "devices_in_job": 8,
            "hosts": 1,
        }
    )
    bare = tuple(
        p.model_copy(
            update={
                "predicted": p.predicted.model_copy(
                    update={"speedup": None, "speedup_low": None, "speedup_high": None}
                ),
                "reasons": p.reasons[1:],
            }
        )
        for p in proposals()
    )
    return report.model_copy(
        update={"profile": profile, "findings": (), "proposals": bare, "baseline": None}
    )


def plan() -> Report:
    """No trace at all: a workload file."""
    report = structure_only()
    return report.model_copy(update={"profile": None, "trace": None})


def hostile() -> Report:
    """Names in a trace that try to colour, link, mention, close a tag and clear the screen."""
    report = training()
    evil = (
        "[red]x[/] \x1b[2J\x1b]8;;http://evil.example\x07click\x1b]8;;\x07 "
        "@octocat <script>1</script> "
        "[link](http://evil.example) | `code` ![i](x) #12 \u202egnp.exe www.evil.example :tada: "
        "</details> $x$ https://evil.example/a"
    )
    bad = report.findings[0].model_copy(update={"title": evil, "detail": evil + "\n# Heading"})
    profile = training_profile().model_copy(
        update={
            "device_label": evil,
            "facts": (*training_profile().facts[1:], STEP_FACT.model_copy(update={"source": evil})),
            "missing": (evil,),
        }
    )
    return report.model_copy(update={"findings": (bad,), "profile": profile, "caveats": (evil,)})


ALL = {
    "training": training,
    "not_sharding": not_sharding,
    "cannot_tell": cannot_tell,
    "structure_only": structure_only,
    "plan": plan,
}
