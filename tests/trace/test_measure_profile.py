"""Whole captures with answers worked out by hand."""

from __future__ import annotations

import pytest
from trace_build import Program, Trace, iota_list, mesh_proto, trace_file

from prompts_agent.errors import NotDiagnosableError
from prompts_agent.trace.capture import Capture
from prompts_agent.trace.measure.profile import measure
from prompts_agent.trace.profile import CollectiveKind, Profile, Roofline
from prompts_agent.trace.xspace.reader import read_xspace

US = 1e-6
FUSION = "%fusion.1 = f32[1024,1024]{1,0} fusion(%p)"
START = "%all-gather-start.1 = (f32[4], f32[32]) all-gather-start(f32[4]{0} %x)"
DONE = "%all-gather-done.1 = f32[32]{0} all-gather-done(%all-gather-start.1)"
REDUCE = "%all-reduce.2 = f32[16]{0} all-reduce(f32[16]{0} %g)"
WAIT = "%copy-done.3 = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(5)}, u32[]) %copy-start.3)"
INFEED = "%infeed.4 = ((f32[8]{0}), token[]) infeed(token[] %t)"
LOOP = "%while.5 = (f32[8]{0}) while((f32[8]{0}) %init), condition=%c, body=%b"

# One step of 100 µs, of which the run takes 90: a loop [0,60) around a fusion of 30 and an
# all-gather that starts at 2, is waited for from 40 to 52; then an all-reduce of 8, a wait of 10
# for host memory, 5 of infeed. Busy 30 + 1 + 12 + 8 + 10 + 5 = 66.
STEP = [
    (LOOP, 0.0, 60.0),
    (START, 2.0, 1.0),
    (FUSION, 5.0, 30.0),
    (DONE, 40.0, 12.0),
    (REDUCE, 60.0, 8.0),
    (WAIT, 70.0, 10.0),
    (INFEED, 80.0, 5.0),
]
STEPS = 6


def step_program() -> Program:
    program = Program("jit_step")
    gather = program.add("all-gather-start.1", "all-gather-start", "f32", (32,))
    gather.collective_device_list.iota_replica_group_list.CopyFrom(iota_list(2, 4, [8]))
    program.add("all-gather-done.1", "all-gather-done", "f32", (32,), ["all-gather-start.1"])
    reduce = program.add("all-reduce.2", "all-reduce", "f32", (16,))
    reduce.iota_collective_device_list.CopyFrom(iota_list(4, 2, [2, 4], [1, 0]))
    program.add("fusion.1", "fusion", "f32", (1024, 1024))
    program.add("while.5", "while")
    return program


def tpu(trace: Trace, index: int, *, slower: float = 0.0, cut: float = 90.0) -> None:
    """Six steps; the last run lasts `cut`. `slower` µs are added to each step's fusion."""
    period = 100.0 + slower
    ops, runs = [], []
    for k in range(STEPS):
        base = k * period
        for name, start, duration in STEP:
            late = slower if start > 5 else 0.0
            longer = slower if name in (LOOP, FUSION) else 0.0
            ops.append((name, base + start + late, duration + longer))
        runs.append(("jit_step(7)", base, cut if k == STEPS - 1 else 90.0 + slower))
    costs = {
        "fusion.1": {"flops": 10**9, "bytes_accessed": 4 * 10**6, "hlo_category": "loop fusion"},
        "all-reduce.2": {"flops": 16},
    }
    trace.tpu(index, ops, runs, costs=costs)


def measured(trace: Trace) -> Profile:
    return measure(read_xspace([("vm0", trace.bytes())], trace_file()))


def one_chip() -> Profile:
    trace = Trace()
    tpu(trace, 0, cut=7.0)
    trace.programs({"jit_step(7)": step_program().bytes()})
    return measured(trace)


def test_step() -> None:
    profile = one_chip()
    assert profile.step is not None
    # Six runs, first and last dropped; the cut-off last one still ends the fifth's period.
    assert profile.step.count == 4
    assert profile.step.median_s == pytest.approx(90 * US)
    assert profile.step.period_s == pytest.approx(100 * US)
    assert profile.step.program == "jit_step"


def test_breakdown_adds_up_to_the_period() -> None:
    parts = one_chip().breakdown
    assert parts.compute_s == pytest.approx(31 * US)  # the fusion, and issuing the gather
    assert parts.exposed_collective_s == pytest.approx(20 * US)  # 12 in the done, 8 synchronous
    assert parts.host_transfer_s == pytest.approx(10 * US)
    assert parts.input_s == pytest.approx(5 * US)
    assert parts.idle_s == pytest.approx(34 * US)
    assert sum(v for v in parts.model_dump().values()) == pytest.approx(100 * US)


def test_collectives_by_axis() -> None:
    profile = one_chip()
    assert [(axis.name, axis.size) for axis in profile.mesh] == [("axis0", 2), ("axis1", 4)]
    gather, reduce = profile.collectives
    assert (gather.kind, gather.axis, gather.group_size) == (CollectiveKind.ALL_GATHER, "axis1", 4)
    assert (gather.count, gather.bytes) == (1.0, 128)
    assert gather.exposed_s == pytest.approx(12 * US)
    assert gather.total_s == pytest.approx(50 * US)  # from 2 to 52
    assert (reduce.kind, reduce.axis, reduce.group_size) == (CollectiveKind.ALL_REDUCE, "axis0", 2)
    assert reduce.exposed_s == reduce.total_s == pytest.approx(8 * US)


def test_ops_have_self_time_and_a_ceiling() -> None:
    ops = {op.name: op for op in one_chip().top_ops}
    fusion = ops["fusion.1"]
    assert "while.5" not in ops
    assert fusion.total_s == pytest.approx(30 * US)
    assert (fusion.share, fusion.count) == (pytest.approx(0.3), 1.0)
    # 4 MB at 1638 GB/s take 2.442 µs; 1 GFLOP at 918 TFLOP/s 1.089 µs: memory is the nearer one.
    assert fusion.roofline is Roofline.HBM
    assert fusion.roofline_efficiency == pytest.approx(2.442 / 30, rel=1e-3)
    assert ops["all-reduce.2"].roofline is Roofline.UNKNOWN


def test_flops_leave_collectives_out() -> None:
    assert one_chip().flops_per_step == pytest.approx(1e9)


def test_facts() -> None:
    profile = one_chip()
    values = {fact.id: fact.value for fact in profile.facts}
    assert values["step_time"] == pytest.approx(90 * US)
    assert values["breakdown.compute.share"] == pytest.approx(0.31)
    assert values["collective.all-gather.axis1.exposed"] == pytest.approx(12 * US)
    assert values["host_transfer.device0.total"] == pytest.approx(STEPS * 10 * US)
    assert values["exposed_collective.device0.total"] == pytest.approx(STEPS * 20 * US)
    assert (values["devices.job"], values["mesh.axis1"]) == (8, 4)
    assert values["op.1.share"] == pytest.approx(0.3)
    # 1 GFLOP in 100 µs are 10 TFLOP/s of 918.
    assert values["mfu"] == pytest.approx(10 / 918)
    assert len(values) == len(profile.facts)
    assert all(fact.source for fact in profile.facts)


def test_the_slowest_chip_is_the_step() -> None:
    trace = Trace()
    for index in range(3):
        tpu(trace, index, slower=10.0 if index == 1 else 0.0)
    profile = measured(trace)
    assert profile.step is not None
    assert profile.step.median_s == pytest.approx(100 * US)
    assert [(chip.name, round(chip.step_time_s / US)) for chip in profile.stragglers] == [
        ("vm0/TPU:1", 100),
        ("vm0/TPU:0", 90),
        ("vm0/TPU:2", 90),
    ]
    assert profile.breakdown.compute_s == pytest.approx(41 * US)
    spread = profile.fact("straggler.spread")
    assert spread is not None
    assert spread.value == pytest.approx(100 / 90)


def test_what_is_missing_is_said() -> None:
    profile = one_chip()
    assert any("7 of the job's 8 devices are not in the trace" in text for text in profile.missing)
    assert any("peak memory" in text for text in profile.missing)
    assert profile.hbm_peak_bytes is None
    assert profile.hbm_capacity_bytes == 34359738368  # 32 GiB of a v6e, from the hardware table


def test_names_of_the_mesh() -> None:
    program = Program("jit_step")
    for name, axis in (("all-reduce.2", 0), ("all-gather-start.1", 1)):
        found = program.add(name, name.split(".")[0], "f32", (16,))
        groups = found.mesh_axes_replica_group_list
        groups.mesh.CopyFrom(mesh_proto({"data": 2, "model": 4}))
        groups.axes.add(mesh_axis_index=axis)
    program.add("all-gather-done.1", "all-gather-done", "f32", (16,), ["all-gather-start.1"])
    trace = Trace()
    tpu(trace, 0)
    trace.programs({"jit_step(7)": program.bytes()})
    profile = measured(trace)
    assert [(axis.name, axis.size) for axis in profile.mesh] == [("data", 2), ("model", 4)]
    assert {(use.kind.value, use.axis) for use in profile.collectives} == {
        ("all-gather", "model"),
        ("all-reduce", "data"),
    }


def test_a_recompile() -> None:
    trace = Trace()
    tpu(trace, 0)
    trace.programs({f"jit_step({k})": step_program().bytes() for k in (5, 7)})
    host = trace.plane("/host:CPU")
    host.line("main", [("backend_compile", 0.0, 50.0), ("TfrtTpuCompiler::Compile", 5.0, 40.0)])
    profile = measured(trace)
    assert profile.recompilations == 1
    assert profile.recompile_s == pytest.approx(50 * US)  # the inner one is part of the outer one


def test_two_programs_of_one_name_without_a_compile_cost_nothing() -> None:
    trace = Trace()
    tpu(trace, 0)
    trace.programs({f"jit_step({k})": step_program().bytes() for k in (5, 7)})
    profile = measured(trace)
    assert (profile.recompilations, profile.recompile_s) == (0, None)


def test_a_gpu_exposes_what_no_kernel_covers() -> None:
    """NCCL [0,10) with kernels [0,4) and [6,8) beside it: 10 - 6 = 4 exposed; a copy [20,23)."""
    trace = Trace()
    card = {
        "compute_cap_major": 8,
        "compute_cap_minor": 0,
        "core_count": 108,
        "memory_size": 85 * 10**9,
    }
    plane = trace.plane("/device:GPU:0", card)
    stats = {"hlo_module": "ref:jit_f", "program_id": 1}
    for stream, kernels in (
        ("Stream #1(Compute)", [("gemm", 0.0, 4.0), ("gemm2", 6.0, 2.0)]),
        ("Stream #2(NCCL)", [("ncclDevKernel_AllReduce_Sum", 0.0, 10.0)]),
        ("Stream #3(MemcpyH2D)", [("MemcpyH2D", 20.0, 3.0)]),
    ):
        spans = [
            (name, 50.0 * k + start, duration, {} if "Memcpy" in name else stats)
            for k in range(4)
            for name, start, duration in kernels
        ]
        plane.line(stream, spans)
    profile = measured(trace)
    assert profile.device_kind == "a100-80"
    assert profile.breakdown.compute_s == pytest.approx(6 * US)
    assert profile.breakdown.exposed_collective_s == pytest.approx(4 * US)
    assert profile.breakdown.host_transfer_s == pytest.approx(3 * US)
    assert profile.breakdown.idle_s == pytest.approx(37 * US)
    assert profile.collectives[0].total_s == pytest.approx(10 * US)
    assert profile.collectives[0].exposed_s == pytest.approx(4 * US)
    assert profile.collectives[0].axis is None
    assert profile.flops_per_step is None
    assert any("mesh axis of some collectives" in text for text in profile.missing)


def test_a_program_alone_is_structure() -> None:
    from prompts_agent.trace.hlo.proto import read_hlo_proto

    program = read_hlo_proto(step_program().bytes())
    capture = Capture(file=trace_file(), devices=[], programs={7: program}, devices_in_job=8)
    profile = measure(capture)
    assert (profile.structure_only, profile.step, profile.top_ops) == (True, None, ())
    assert {(c.kind.value, c.axis, c.count) for c in profile.collectives} == {
        ("all-gather", "axis1", 1.0),
        ("all-reduce", "axis0", 1.0),
    }
    assert all(c.total_s is None for c in profile.collectives)


def test_nothing_at_all() -> None:
    with pytest.raises(NotDiagnosableError, match="no device shows an event"):
        measure(Capture(file=trace_file(), devices=[]))
