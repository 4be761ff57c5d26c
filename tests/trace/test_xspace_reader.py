"""XSpace to Capture: TPU, GPU and CPU devices, host events, several hosts."""

from __future__ import annotations

import pytest
from trace_build import Program, Trace, trace_file

from prompts_agent.errors import NotDiagnosableError
from prompts_agent.trace.capture import Capture, DeviceEvents
from prompts_agent.trace.xspace.labels import gpu_label
from prompts_agent.trace.xspace.reader import read_xspace
from prompts_agent.trace.xspace.runs import derive_runs
from prompts_agent.trace.xspace.tpu import split_module_name

GB = 10**9
US = 10**6


def read(trace: Trace) -> Capture:
    return read_xspace([("vm0", trace.bytes())], trace_file())


def names(events: DeviceEvents) -> list[str]:
    return [events.table[k].name for k in events.ops.op]


def test_a_tpu() -> None:
    trace = Trace()
    program = Program()
    gather = program.add("all-gather-start", "all-gather-start", "f32", (8, 4))
    gather.replica_groups.add(replica_ids=[0, 1, 2, 3])
    program.add("all-gather-done", "all-gather-done", "f32", (8, 4), ["all-gather-start"])
    ops = [
        ("%all-gather-start = f32[8,4] all-gather-start(%x)", 1.0, 0.5),
        ("%fusion.1 = f32[8]{0} fusion(%p)", 2.0, 3.0),
        ("%all-gather-done = f32[8,4] all-gather-done(%all-gather-start)", 5.0, 4.0),
    ]
    plane = trace.tpu(0, ops, [("jit_step(7)", 0.0, 10.0)], costs={"fusion.1": {"flops": 640}})
    plane.line("Steps", [("0", 0.0, 10.0)])
    plane.line("Async XLA Ops", [(ops[0][0], 1.0, 8.0)])
    trace.programs({"jit_step(7)": program.bytes()})
    capture = read(trace)
    device = capture.devices[0]
    assert (device.label, device.platform, device.peak_flops) == ("TPU v6 Lite", "tpu", 918e12)
    assert capture.devices_in_job == 8
    events = capture.events(device)
    assert names(events) == ["all-gather-start", "fusion.1", "all-gather-done"]
    assert events.ops.start_ps.tolist() == [1 * US, 2 * US, 5 * US]
    assert events.step_markers == [(0, 10 * US)]
    assert events.windows is not None
    assert events.windows.duration_ps.tolist() == [8 * US]
    run = events.modules[0]
    assert (run.name, run.program_id, run.duration_ps) == ("jit_step", 7, 10 * US)
    done = events.table[events.ops.op[2]]
    # The done carries what its start moves and over whom: 8·4·4 bytes among four.
    assert (done.opcode, done.collective_bytes, done.group_size) == ("all-gather-done", 128, 4)
    assert events.table[events.ops.op[1]].flops == 640


def test_without_hlo_the_event_names_tell() -> None:
    trace = Trace()
    ops = [
        (
            "%all-reduce-start.2 = f32[8,4]{1,0} all-reduce-start(f32[8,4]{1,0} %x), "
            "replica_groups={{0,1},{2,3}}",
            0.0,
            1.0,
        ),
        ("%all-reduce-done.2 = f32[8,4]{1,0} all-reduce-done(f32[8,4]{1,0} %all-reduce-start.2)",
         1.0, 1.0),
    ]  # fmt: skip
    trace.tpu(0, ops, [("jit_step(7)", 0.0, 10.0)])
    capture = read(trace)
    events = capture.events(capture.devices[0])
    done = events.table[events.ops.op[1]]
    assert (done.opcode, done.groups) == ("all-reduce-done", ((0, 1), (2, 3)))
    assert "no HLO" in capture.missing[0]


def test_zero_flops_of_a_custom_call_are_unknown() -> None:
    trace = Trace()
    ops = [("%attention = f32[8]{0} custom-call(%q)", 0.0, 1.0)]
    trace.tpu(0, ops, [], costs={"attention": {"flops": 0, "bytes_accessed": 64}})
    capture = read(trace)
    op = capture.events(capture.devices[0]).table[0]
    assert (op.flops, op.bytes) == (None, 64)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("%copy-done = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(5)}) %copy-start)", True),
        ("%copy-done = f32[8]{0} copy-done((f32[8]{0}, f32[8]{0:S(1)}) %copy-start)", False),
        ("%recv-done = f32[8]{0} recv-done(%recv), is_host_transfer=true", True),
        (
            "%recv-done = f32[8]{0} recv-done(%recv), is_host_transfer=true, "
            'frontend_attributes={_xla_megascale_transfer_type="ONE_TO_ONE"}',
            False,
        ),
    ],
)
def test_what_touches_the_host(text: str, host: bool) -> None:
    trace = Trace()
    trace.tpu(0, [(text, 0.0, 1.0)], [])
    capture = read(trace)
    assert capture.events(capture.devices[0]).table[0].is_host_transfer is host


def gpu_trace(kernels: list[tuple[str, float, float, dict[str, object]]]) -> Trace:
    trace = Trace()
    stats = {"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 4,
             "core_count": 304, "memory_size": 206 * GB}  # fmt: skip
    plane = trace.plane("/device:GPU:0", stats)
    plane.line("Stream #1(Kernel)", kernels[::2], timestamp_ns=1000)
    plane.line("Stream #2(Kernel)", kernels[1::2], timestamp_ns=1000)
    plane.line("XLA Ops", [("derived", 0.0, 99.0)])
    trace.plane("/device:GPU:1", stats)
    return trace


def test_a_gpu() -> None:
    def of(op: str) -> dict[str, object]:
        return {"hlo_op": f"ref:{op}", "hlo_module": "ref:jit_f", "program_id": 3,
                "correlation_id": 5}  # fmt: skip

    program = Program("jit_f", devices=2)
    program.add("fusion.1", "fusion")
    program.add("gemm", "custom-call")
    reduce = program.add("all-reduce-start", "all-reduce-start", "f32", (16,))
    reduce.replica_groups.add(replica_ids=[0, 1])
    trace = gpu_trace(
        [
            ("fusion_1.kd", 0.0, 2.0, of("fusion.1")),
            ("ncclDevKernel_AllReduce", 1.0, 4.0, of("all-reduce-start")),
            ("Cijk_gemm", 3.0, 1.0, of("gemm")),
            ("MemcpyH2D", 9.0, 1.0, {"memcpy_details": "size:4"}),
            ("fusion_1.kd", 20.0, 2.0, of("fusion.1")),
            ("ncclDevKernel_AllReduce", 21.0, 4.0, of("all-reduce-start")),
            ("Cijk_gemm", 23.0, 1.0, of("gemm")),
        ]
    )
    trace.programs({"jit_f(3)": program.bytes()})
    capture = read(trace)
    assert [device.active for device in capture.devices] == [True, False]
    assert capture.devices[0].label == "AMD gfx942"
    events = capture.events(capture.devices[0])
    assert names(events) == ["fusion.1", "all-reduce-start", "gemm", "MemcpyH2D", "fusion.1",
                             "all-reduce-start", "gemm"]  # fmt: skip
    # A line's start is added: 1000 ns.
    assert events.ops.start_ps.tolist()[:2] == [1 * US, 2 * US]
    ops = {op.name: op for op in events.table}
    assert (ops["gemm"].opcode, ops["gemm"].flops) == ("custom-call", None)
    assert ops["all-reduce-start"].collective_bytes == 64
    assert (ops["MemcpyH2D"].opcode, ops["MemcpyH2D"].is_host_transfer) == ("memcpy-h2d", True)
    assert [(r.name, r.start_ps, r.duration_ps) for r in events.modules] == [
        ("jit_f", 1 * US, 5 * US),
        ("jit_f", 21 * US, 5 * US),
    ]


def test_cpu_devices() -> None:
    trace = Trace()
    program = Program("jit_f", devices=2)
    program.add("dot.1", "dot")
    program.add("add.1", "add")
    plane = trace.plane("/host:CPU")

    def on(device: int, op: str, run: int) -> dict[str, object]:
        return {"hlo_op": f"ref:{op}", "hlo_module": "ref:jit_f", "program_id": 4, "run_id": run,
                "device_ordinal": device}  # fmt: skip

    plane.line(
        "tf_XLAEigen/1",
        [("dot.1", 0.0, 2.0, on(0, "dot.1", 1)), ("dot.1", 4.0, 2.0, on(1, "dot.1", 1))],
    )
    plane.line(
        "tf_XLAEigen/2",
        [("add.1", 3.0, 1.0, on(0, "add.1", 1)), ("dot.1", 9.0, 2.0, on(0, "dot.1", 2))],
    )
    plane.line("python", [("dot.1", 1.0, 1.0)])  # a function of that name, no op
    trace.programs({"jit_f(4)": program.bytes()})
    capture = read(trace)
    assert [(d.platform, d.index) for d in capture.devices] == [("cpu", 0), ("cpu", 1)]
    events = capture.events(capture.devices[0])
    assert names(events) == ["dot.1", "add.1", "dot.1"]
    assert [(r.start_ps, r.duration_ps) for r in events.modules] == [(0, 4 * US), (9 * US, 2 * US)]


def test_the_host_plane() -> None:
    trace = Trace()
    trace.tpu(0, [("%f = f32[] fusion()", 0.0, 1.0)], [])
    plane = trace.plane("/host:CPU")

    def allocated(used: int, reserved: int, peak: int, name: str) -> dict[str, object]:
        return {"allocator_name": name, "bytes_allocated": used, "bytes_reserved": reserved,
                "bytes_available": 1000 - used - reserved, "peak_bytes_in_use": peak}  # fmt: skip

    plane.line(
        "main",
        [
            ("backend_compile", 0.0, 5.0),
            ("infeed-decomposer", 1.0, 1.0),
            ("train", 6.0, 1.0, {"step_num": 3}),
            ("train", 8.0, 1.0),
            ("noise", 9.0, 1.0),
            ("MemoryAllocation", 9.0, 0.0, allocated(300, 500, 700, "TPU_0")),
            ("MemoryDeallocation", 9.5, 0.0, allocated(100, 0, 700, "TPU_0")),
            ("MemoryAllocation", 9.6, 0.0, allocated(990, 0, 995, "tpu_host_bfc")),
        ],
    )
    capture = read(trace)
    found = [(event.kind, event.start_ps, event.step) for event in capture.host_events]
    assert found == [("compile", 0, None), ("step", 6 * US, 3)]
    # 300 in use and 500 reserved at once; the host's own pool does not count.
    assert capture.hbm_peak_bytes == 800
    assert capture.devices[0].memory_bytes == 1000


def test_hosts_of_one_job() -> None:
    def host() -> bytes:
        trace = Trace()
        trace.tpu(0, [("%f = f32[] fusion()", 0.0, 1.0)], [("jit_f(7)", 0.0, 1.0)])
        trace.message.errors.append("lost 3 events")
        return trace.bytes()

    capture = read_xspace([("vm0", host()), ("vm1", host())], trace_file())
    assert [(device.host, device.index) for device in capture.devices] == [("vm0", 0), ("vm1", 0)]
    assert "vm1: the profiler reported: lost 3 events" in capture.file.caveats
    assert len(capture.events(capture.devices[1]).ops) == 1


def test_lines_that_count_from_1970() -> None:
    trace = Trace()
    plane = trace.plane("/device:TPU:0", {"device_type_string": "TPU v4"})
    now_ns = 1_741_722_099_081_044_120
    plane.line("XLA Modules", [("jit_f(7)", 0.0, 5.0)], timestamp_ns=now_ns)
    plane.line("XLA Ops", [("%f = f32[] fusion()", 1.0, 1.0)], timestamp_ns=now_ns + 2000)
    capture = read(trace)
    events = capture.events(capture.devices[0])
    assert events.modules[0].start_ps == 0
    assert events.ops.start_ps.tolist() == [3 * US]


def test_nothing_to_diagnose() -> None:
    trace = Trace()
    trace.plane("/device:GPU:0", {"core_count": 80})
    with pytest.raises(NotDiagnosableError, match="1 idle devices and no program"):
        read(trace)


def test_programs_without_events_are_structure() -> None:
    trace = Trace()
    trace.programs({"jit_f(7)": Program().bytes()})
    assert "only the structure" in read(trace).missing[0]


@pytest.mark.parametrize(
    ("name", "split"),
    [("jit_f(12)", ("jit_f", 12)), ("jit_f(-1)", ("jit_f(-1)", None)), ("main", ("main", None))],
)
def test_module_names(name: str, split: tuple[str, int | None]) -> None:
    assert split_module_name(name) == split


@pytest.mark.parametrize(
    ("capability", "cores", "memory_gb", "label"),
    [
        ((7, 0), 80, 16.9, "Tesla V100-SXM2-16GB"),
        ((8, 0), 108, 85.0, "NVIDIA A100-SXM4-80GB"),
        ((8, 0), 108, 42.0, "NVIDIA A100-SXM4-40GB"),
        ((9, 0), 132, 85.0, "NVIDIA H100 80GB HBM3"),
        ((9, 0), 132, 151.0, "NVIDIA H200"),
        ((6, 1), 20, 8.0, "NVIDIA sm_61, 20 SMs"),
    ],
)
def test_gpu_labels(capability: tuple[int, int], cores: int, memory_gb: float, label: str) -> None:
    stats = {"compute_cap_major": capability[0], "compute_cap_minor": capability[1],
             "core_count": cores, "memory_size": round(memory_gb * GB)}  # fmt: skip
    assert gpu_label(stats) == label


def test_runs_from_repetition() -> None:
    """Ops a b b a b b: a ran as often as the program, b is in a loop."""
    import numpy as np

    from prompts_agent.trace.capture import Events, Op

    table = [Op(name=name, opcode="fusion", program_id=1) for name in "abc"]
    table.append(Op(name="x", opcode="fusion"))
    op = np.array([0, 1, 1, 2, 3, 0, 1, 1, 2], np.int32)
    start = np.arange(9, dtype=np.int64) * 10
    runs = derive_runs(table, Events(op, start, np.full(9, 5, np.int64)), {1: "jit_f"})
    assert [(run.start_ps, run.duration_ps) for run in runs] == [(0, 35), (50, 35)]
