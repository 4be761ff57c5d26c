"""PyTorch's JSON: kernels, collectives, steps, ranks, and its broken forms."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from trace_samples import (
    ALL_REDUCE,
    GEMM,
    copy,
    exposed_ps,
    host,
    kernel,
    kineto,
    nccl,
    save,
    three_steps,
)

from prompts_agent.errors import (
    DamagedTraceError,
    EmptyTraceError,
    NotDiagnosableError,
    TraceError,
)
from prompts_agent.trace.capture import Capture, DeviceEvents, Op
from prompts_agent.trace.kernels import collective_opcode, memcpy_opcode, named_collective
from prompts_agent.trace.nccl import ProcessGroups, axis_of, partition_of, read_collective
from prompts_agent.trace.read import read


def read_one(path: Path, document: object) -> Capture:
    return read([save(path / "rank0.json", document)])


def events_of(capture: Capture, index: int = 0) -> DeviceEvents:
    return capture.events(capture.devices[index])


def ops_of(capture: Capture, opcode: str) -> list[Op]:
    return [op for op in events_of(capture).table if op.opcode == opcode]


def counts(events: DeviceEvents) -> Counter[str]:
    return Counter(events.table[op].opcode for op in events.ops.op)


def test_a_step_by_hand(tmp_path: Path) -> None:
    capture = read_one(tmp_path, kineto(three_steps()))
    (device,) = capture.devices
    assert (device.label, device.memory_bytes) == ("NVIDIA H100", 80_000_000_000)
    assert capture.devices_in_job == 2
    events = events_of(capture)
    assert counts(events) == {"kernel": 6, "all-reduce": 3}
    assert events.step_markers == [(k * 100_000_000, 100_000_000) for k in range(3)]
    assert exposed_ps(events, frozenset({"all-reduce"})) == 3 * 10_000_000
    (reduce,) = ops_of(capture, "all-reduce")
    assert reduce.collective_bytes == 4000
    assert reduce.group_size == 2
    assert reduce.groups == ((0, 1),)
    assert reduce.axis is None, "default_pg names no axis"
    assert reduce.name == "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    assert [(event.kind, event.step) for event in capture.host_events] == [
        ("step", 0),
        ("step", 1),
        ("step", 2),
    ]


def test_large_clock_values_keep_their_nanoseconds(tmp_path: Path) -> None:
    # µs since 1970 exceed int64 once they are picoseconds: 1.67e15 µs = 1.67e21 ps.
    events = [kernel(GEMM, 1669783687384378 + 10 * k, 3) for k in range(3)]
    found = events_of(read_one(tmp_path, kineto(events)))
    assert found.ops.start_ps.tolist() == [0, 10_000_000, 20_000_000]
    assert found.ops.duration_ps.tolist() == [3_000_000] * 3


def test_an_annotation_on_the_gpu_is_preferred_to_the_hosts(tmp_path: Path) -> None:
    # The host dispatches step 0 in 0-10, the GPU runs it in 50-90 on one stream, 60-110 on another.
    events = [
        host("ProfilerStep#0", 0, 10),
        host("ProfilerStep#0", 50, 40, cat="gpu_user_annotation", pid=0, tid=7),
        host("ProfilerStep#0", 60, 50, cat="gpu_user_annotation", pid=0, tid=20),
        kernel(GEMM, 50, 40),
        kernel(GEMM, 60, 50),
    ]
    assert events_of(read_one(tmp_path, kineto(events))).step_markers == [(50_000_000, 60_000_000)]


def test_steps_from_a_repeated_annotation(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [kernel("once_only", 0, 1)]
    for k in range(4):
        events += [
            host(f"step[DECODE bs={16 + k}]", 10 + 20 * k, 15),
            kernel(GEMM, 12 + 20 * k, 5),
        ]
    capture = read_one(tmp_path, kineto(events))
    found = events_of(capture)
    assert found.step_markers == []
    assert [(run.start_ps, run.duration_ps) for run in found.modules] == [
        (10_000_000 + 20_000_000 * k, 15_000_000) for k in range(4)
    ]
    assert found.modules[0].name == "annotation 'step[DECODE bs=#]'"
    assert any("steps derived from annotation" in caveat for caveat in capture.file.caveats)


def test_steps_from_what_repeats_as_a_whole(tmp_path: Path) -> None:
    # 4 steps of 100 µs: one embedding, 3 layers of one GEMM each.
    events = []
    for step in range(4):
        events.append(kernel("embedding", 100 * step, 5))
        events += [kernel(GEMM, 100 * step + 10 + 20 * layer, 15) for layer in range(3)]
    capture = read_one(tmp_path, kineto(events))
    modules = events_of(capture).modules
    assert [run.start_ps for run in modules] == [0, 100_000_000, 200_000_000]
    assert {run.duration_ps for run in modules} == {100_000_000}
    assert modules[0].name == "4 repeats of kernel 'embedding'"


def test_the_layers_of_one_step_are_no_steps(tmp_path: Path) -> None:
    events = [kernel("embedding", 0, 5)] + [kernel(GEMM, 10 + 20 * k, 15) for k in range(32)]
    capture = read_one(tmp_path, kineto(events))
    assert events_of(capture).modules == []
    assert events_of(capture).step_markers == []


def test_several_ranks_are_several_devices(tmp_path: Path) -> None:
    paths = [
        save(tmp_path / f"node{rank}.json.gz", kineto(three_steps(), rank=rank)) for rank in (1, 0)
    ]
    capture = read(paths)
    assert [device.host for device in capture.devices] == ["node1", "node0"]
    assert len(capture.devices) == capture.devices_in_job == 2
    alone = read(paths[:1])
    assert (len(alone.devices), alone.devices_in_job) == (1, 2)


def test_one_rank_twice_is_refused(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{name}.json", kineto(three_steps(), rank=3)) for name in "ab"]
    with pytest.raises(TraceError, match="rank 3 occurs twice"):
        read(paths)


def test_metadata_from_the_hosts_record(tmp_path: Path) -> None:
    metadata = {
        "Collective name": "_reduce_scatter_base",
        "In msg nelems": 4096,
        "Out msg nelems": 1024,
        "Group size": 4,
        "dtype": "BFloat16",
        "Process Group Description": "mesh_dp_shard",
        "Process Group Ranks": "[0, 2, 4, 6]",
        "External id": 31,
    }
    events = [
        host("record_param_comms", 0, 5, cat="cpu_op", args=metadata),
        kernel("ncclKernel_ReduceScatter_RING_LL_Sum(ncclWorkElem)", 10, 5, **{"External id": 31}),
    ]
    (op,) = ops_of(read_one(tmp_path, kineto(events, world=8)), "reduce-scatter")
    assert op.collective_bytes == 8192, "the larger side, 4096 × 2 bytes"
    assert op.groups == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert op.axis == "fsdp"


def test_ranks_that_pytorch_shortened() -> None:
    args = {"Collective name": "allreduce", "Group size": 4, "Process Group Name": "7"}
    shortened = args | {"Process Group Ranks": "[0, 1, ..., 3]"}
    listed = ProcessGroups([{"pg_name": "7", "ranks": [0, 1, 2, 3]}])
    found = read_collective(shortened, listed)
    assert found is not None
    assert found.ranks == (0, 1, 2, 3)
    strided = shortened | {"Global rank start": 2, "Global rank stride": 8}
    found = read_collective(strided, ProcessGroups(None))
    assert found is not None
    assert found.ranks == (2, 10, 18, 26)
    found = read_collective(shortened, ProcessGroups(None))
    assert found is not None
    assert (found.ranks, found.group_size, found.bytes) == (None, 4, None)


@pytest.mark.parametrize(
    ("description", "axis"),
    [
        ("default_pg", None),
        ("undefined", None),
        ("mesh_tp", "tensor"),
        ("mesh_dp_shard", "fsdp"),
        ("mesh_dp_shard_cp", "dp_shard_cp"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "tensor"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "expert"),
        ("<script>", None),
        (7, None),
    ],
)
def test_axes_behind_process_groups(description: object, axis: str | None) -> None:
    assert axis_of(description) == axis


@pytest.mark.parametrize(
    ("name", "opcode"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "all-reduce"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all-gather"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce-scatter"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send"),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t", "collective-broadcast"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "unknown"),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>", "all-reduce"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(...)", "all-reduce"),
        ("void flashinfer::trtllm_allreduce_fusion::oneshot_lamport<8>()", "all-reduce"),
        ("quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot>()", "all-reduce"),
        ("void dpsk::ep::internode::dispatch<false, 4>(...)", "all-to-all"),
        ("void deep_ep::intranode::combine<bf16>()", "all-to-all"),
        ("hcom_allReduce_", "all-reduce"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", None),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>", None),
        ("void at::native::vectorized_gather_kernel<16, long>(char*)", None),
        ("Cijk_Alik_Bljk_BBS_BH_MT256x48x64", None),
        ("triton_poi_fused_0", None),
    ],
)
def test_which_kernels_communicate(name: str, opcode: str | None) -> None:
    assert collective_opcode(name) == opcode


def test_names_of_collectives_and_copies() -> None:
    assert named_collective("_allgather_base") == "all-gather"
    assert named_collective("reduce_scatter_tensor_coalesced") == "reduce-scatter"
    assert named_collective("all_to_allv") == "all-to-all"
    assert named_collective("wait") is None
    assert memcpy_opcode("Memcpy HtoD (Pinned -> Device)") == "memcpy-h2d"
    assert memcpy_opcode("Memcpy DtoH (Device -> Pageable)") == "memcpy-d2h"
    assert memcpy_opcode("Memcpy DtoD (Device -> Device)") == "memcpy-d2d"
    assert memcpy_opcode("Memcpy PtoP (Device -> Device)") == "memcpy-p2p"
    assert memcpy_opcode("MemcpyD2H") == "memcpy-d2h"
    assert memcpy_opcode("Memcpy Unknown (Unknown -> Unknown)") == "memcpy-unknown"


def test_copies_to_and_from_the_host(tmp_path: Path) -> None:
    events = [
        copy("Memcpy HtoD (Pinned -> Device)", 0, 1),
        copy("Memcpy DtoD (Device -> Device)", 2, 1),
        copy("Memcpy Unknown (Unknown -> Unknown)", 4, 1, kind="DtoH"),
    ]
    found = {op.opcode: op.is_host_transfer for op in events_of(read_one(tmp_path, events)).table}
    assert found == {"memcpy-h2d": True, "memcpy-d2d": False, "memcpy-d2h": True}


def test_the_schema_of_2021(tmp_path: Path) -> None:
    events = [
        kernel(GEMM, 0, 5) | {"cat": "Kernel"},
        copy("Memcpy HtoD (Pageable -> Device)", 6, 1) | {"cat": "Memcpy"},
        host("ProfilerStep#1", 0, 10, cat="Operator"),
    ]
    found = events_of(read_one(tmp_path, kineto(events)))
    assert counts(found) == {"kernel": 1, "memcpy-h2d": 1}
    assert len(found.step_markers) == 1


def test_gpus_whose_number_is_not_among_the_listed(tmp_path: Path) -> None:
    # ROCm lists the visible GPU as 0 and numbers its kernels 9, as a public MI300X trace does.
    capture = read_one(tmp_path, kineto([kernel(GEMM, 0, 1, device=9)]))
    assert (capture.devices[0].index, capture.devices[0].label) == (9, "NVIDIA H100")


def test_a_gpu_without_a_name(tmp_path: Path) -> None:
    document = kineto([kernel(GEMM, 0, 1)])
    document["deviceProperties"] = [
        {"id": 0, "name": "", "computeMajor": 9, "computeMinor": 4, "warpSize": 64}
    ]
    assert read_one(tmp_path, document).devices[0].label == "AMD gfx942"
    del document["deviceProperties"]
    assert read_one(tmp_path, document).devices[0].label == "unknown GPU"


def test_peak_memory_counts_the_gpu_only(tmp_path: Path) -> None:
    def instant(total: int, device_type: int) -> dict[str, Any]:
        args = {"Total Allocated": total, "Device Type": device_type}
        return {"ph": "i", "name": "[memory]", "ts": 1, "args": args}

    events = [kernel(GEMM, 0, 1), instant(100, 1), instant(300, 1), instant(9000, 0)]
    assert read_one(tmp_path, kineto(events)).hbm_peak_bytes == 300


def test_without_gpu_events_there_is_nothing_to_diagnose(tmp_path: Path) -> None:
    with pytest.raises(NotDiagnosableError) as caught:
        read_one(tmp_path, kineto([host("aten::mm", 0, 5, cat="cpu_op")]))
    assert "ProfilerActivity.CUDA" in caught.value.cure


def test_impossible_times_are_dropped_and_counted(tmp_path: Path) -> None:
    events = [
        kernel(GEMM, 10, 5),
        kernel(GEMM, 20, -5),
        kernel(GEMM, 1e300, 5),
        kernel(GEMM, "soon", 5),  # type: ignore[arg-type]
        kernel(GEMM, 30, 5),
    ]
    capture = read_one(tmp_path, kineto(events))
    assert len(events_of(capture).ops) == 2
    assert any("3 events with impossible times" in caveat for caveat in capture.file.caveats)


BACKSLASH = (
    b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a\\escape", "pid": 0, "tid": 7, '
)
TAIL = b'"ts": 1, "dur": 2, "args": {"device": 0}}]}'


@pytest.mark.parametrize(
    "data",
    [
        BACKSLASH + TAIL,
        BACKSLASH.replace(b"\\e", b"\x01\x02e") + TAIL,
        BACKSLASH.replace(b"\\e", b"\xff") + TAIL,
        BACKSLASH.replace(b"\\e", b"\\u12") + TAIL,
        BACKSLASH.replace(b"\\e", b"\\ud800") + TAIL,
    ],
    ids=["escape", "control bytes", "no UTF-8", "short \\u", "half a surrogate pair"],
)
def test_invalid_json_is_mended_with_a_caveat(tmp_path: Path, data: bytes) -> None:
    capture = read_one(tmp_path, data)
    assert len(events_of(capture).ops) == 1
    assert any("invalid JSON" in caveat for caveat in capture.file.caveats)
    events_of(capture).table[0].name.encode()


def test_json_that_is_cut_off_keeps_what_precedes(tmp_path: Path) -> None:
    text = json.dumps(kineto(three_steps())).encode()
    capture = read_one(tmp_path, text[: text.rindex(b'"ph"')])
    assert capture.devices[0].label == "NVIDIA H100", "the header precedes the events"
    assert counts(events_of(capture)) == {"kernel": 5, "all-reduce": 3}
    assert any("before the damage" in caveat for caveat in capture.file.caveats)


def test_json_without_a_whole_event(tmp_path: Path) -> None:
    with pytest.raises(DamagedTraceError, match="no event precedes"):
        read_one(tmp_path, b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "na')
    with pytest.raises(EmptyTraceError, match="no events"):
        read_one(tmp_path, b'{"schemaVersion": 1, "traceEvents": []}')


def test_deep_nesting_is_no_crash(tmp_path: Path) -> None:
    with pytest.raises(DamagedTraceError):
        read_one(tmp_path, b'{"schemaVersion": ' + b"[" * 100_000)


def test_nccl_kernel_of_two_groups_are_two_ops(tmp_path: Path) -> None:
    events = [
        nccl(ALL_REDUCE, 0, 1),
        nccl(ALL_REDUCE, 2, 1, **{"Process Group Ranks": "[0, 2]"}),
        nccl(ALL_REDUCE, 4, 1),
    ]
    found = ops_of(read_one(tmp_path, kineto(events, world=4)), "all-reduce")
    assert [op.groups for op in found] == [((0, 1), (2, 3)), ((0, 2), (1, 3))]


@pytest.mark.parametrize(
    ("ranks", "world", "groups"),
    [
        ((0, 1), 2, ((0, 1),)),
        ((0, 1), 4, ((0, 1), (2, 3))),
        ((1, 3), 8, ((0, 2), (1, 3), (4, 6), (5, 7))),
        ((3, 1), 8, ((0, 2), (1, 3), (4, 6), (5, 7))),
        ((1,), 2, ((0,), (1,))),
        ((5,), 2, None),
        ((0, 1, 2), None, ((0, 1, 2),)),
        ((0, 4), None, None),
        ((0, 1, 3), 4, None),
        ((0, 1, 2), 4, None),
        ((1, 2), 4, None),
        ((0, 0), 2, None),
    ],
)
def test_a_ranks_own_group_tells_the_others(
    ranks: tuple[int, ...], world: int | None, groups: tuple[tuple[int, ...], ...] | None
) -> None:
    assert partition_of(ranks, world) == groups


def test_a_world_beyond_belief_is_unknown(tmp_path: Path) -> None:
    capture = read_one(tmp_path, kineto(three_steps(), world=2**60))
    assert capture.devices_in_job is None


# ---- real traces; figures measured by a reader of its own


@pytest.mark.real_traces
def test_ddp_on_a100(real_traces: Path) -> None:
    capture = read([real_traces / "kineto-a100-ddp.json.gz"])
    events = events_of(capture)
    assert counts(events)["all-reduce"] == 15
    moved = sum(
        events.table[op].collective_bytes or 0
        for op in events.ops.op
        if events.table[op].opcode == "all-reduce"
    )
    assert moved == pytest.approx(306.7e6, rel=1e-3)
    comm = frozenset({"all-reduce", "collective-broadcast"})
    busy = sum(
        int(duration)
        for op, duration in zip(events.ops.op, events.ops.duration_ps, strict=True)
        if events.table[op].opcode in comm
    )
    assert busy / 1e9 == pytest.approx(46.9, abs=0.05)
    assert exposed_ps(events, comm) / 1e9 == pytest.approx(39.6, abs=0.05)
    assert len(events.step_markers) == 3
    assert capture.devices_in_job == 2
    assert capture.devices[0].label == "NVIDIA A100-PG509-200"


@pytest.mark.real_traces
def test_old_schema_on_v100(real_traces: Path) -> None:
    capture = read([real_traces / "kineto-v100-old-schema.json.gz"])
    events = events_of(capture)
    assert counts(events)["all-reduce"] == 2020
    assert len(events.step_markers) == 5
    assert any("2,020 of 2,020 communication kernels" in note for note in capture.missing)


@pytest.mark.real_traces
def test_custom_all_reduce_on_b200(real_traces: Path) -> None:
    found = counts(events_of(read([real_traces / "kineto-b200-serving-eager.json.gz"])))
    assert (found["all-reduce"], found["all-gather"]) == (73, 1)


@pytest.mark.real_traces
@pytest.mark.parametrize("name", ["sglang-qwen3-8b", "vllm-graph"])
def test_serving_has_no_profiler_step(real_traces: Path, name: str) -> None:
    capture = read([real_traces / f"kineto-mi300x-{name}.json.gz"])
    events = events_of(capture)
    assert (events.step_markers, events.modules) == ([], [])
    if name == "vllm-graph":
        assert any("operators behind 361 of 413 kernels" in note for note in capture.missing)
