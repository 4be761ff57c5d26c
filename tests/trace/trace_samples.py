"""Tiny traces built by hand: a few events each, so that every number can be checked on paper."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

from prompts_agent.trace.capture import DeviceEvents

HLO_TEXT = """\
HloModule jit_step, entry_computation_layout={(f32[8]{0})->f32[8]{0}}, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(f32[] %a, f32[] %b)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %ar = f32[8]{0} all-reduce(f32[8]{0} %p), channel_id=1, replica_groups={{0,1}}, to_apply=%add
}
"""


def field(number: int, value: int | bytes) -> bytes:
    """One protobuf field: an int as varint, bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def xspace(planes: int = 1, events: int = 40) -> bytes:
    """An XSpace of TPU planes: one `XLA Modules` line with runs of 1 ms, starting 2 ms apart."""
    return b"".join(field(1, xplane(number, events)) for number in range(planes))


def xplane(number: int, events: int) -> bytes:
    runs = b"".join(
        field(4, field(1, 1) + field(2, k * 2_000_000_000) + field(3, 1_000_000_000))
        for k in range(events)
    )
    line = field(1, 1) + field(2, b"XLA Modules") + runs
    module = field(1, 1) + field(2, b"jit_step(7)")
    metadata = field(4, field(1, 1) + field(2, module))
    name = f"/device:TPU:{number}".encode()
    return field(1, number + 1) + field(2, name) + field(3, line) + metadata


def kernel(name: str, start_us: float, duration_us: float, **args: Any) -> dict[str, Any]:
    given = {"device": 0, "stream": 7, "External id": 1} | args
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": given["device"],
        "tid": 7,
        "ts": start_us,
        "dur": duration_us,
        "args": given,
    }


def copy(name: str, start_us: float, duration_us: float, **args: Any) -> dict[str, Any]:
    return kernel(name, start_us, duration_us, **args) | {"cat": "gpu_memcpy"}


def host(name: str, start_us: float, duration_us: float, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": name,
        "pid": 99,
        "tid": 99,
        "ts": start_us,
        "dur": duration_us,
        "args": {},
    } | more


def nccl(name: str, start_us: float, duration_us: float, **args: Any) -> dict[str, Any]:
    """An all-reduce of 1000 floats between ranks 0 and 1."""
    return kernel(
        name,
        start_us,
        duration_us,
        **{
            "Collective name": "allreduce",
            "In msg nelems": 1000,
            "Out msg nelems": 1000,
            "Group size": 2,
            "dtype": "Float",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": "[0, 1]",
        }
        | args,
    )


ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "void cutlass::Kernel<float, 128>(Params)"


def kineto(events: list[dict[str, Any]], *, rank: int | None = 0, world: int = 2) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 80_000_000_000}],
        "traceEvents": events,
    }
    if rank is not None:
        document["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}
    return document


def three_steps() -> list[dict[str, Any]]:
    """Three ProfilerSteps of 100 µs.

    Each: GEMM 0-40, all-reduce 30-60 beside it on another stream, GEMM 50-80, idle 80-100.
    All-reduce under neither GEMM: 40-50, so 10 µs are exposed; 80 µs are busy, 20 idle.
    """
    events = []
    for step in range(3):
        start = 1000.0 + 100 * step
        events += [
            host(f"ProfilerStep#{step}", start, 100),
            kernel(GEMM, start, 40),
            nccl(ALL_REDUCE, start + 30, 30, stream=20),
            kernel(GEMM, start + 50, 30),
        ]
    return events


def chrome_names(devices: int = 2, platform: str = "TPU") -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for number in range(devices):
        pid = 3 + number
        events.append(_meta("process_name", pid, None, f"/device:{platform}:{number}"))
        for tid, line in enumerate(
            ("XLA Modules", "XLA Ops", "Async XLA Ops", "Stream #1(Compute)")
        ):
            events.append(_meta("thread_name", pid, tid, line))
    return [*events, _meta("process_name", 701, None, "/host:CPU")]


def _meta(kind: str, pid: int, tid: int | None, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": kind, "args": {"name": name}}


def chrome_event(
    pid: int, tid: int, name: str, start_us: float, duration_us: float, **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "name": name,
        "ts": start_us,
        "dur": duration_us,
        "args": args,
    }


def chrome(devices: int = 2, steps: int = 3) -> dict[str, Any]:
    """`steps` runs of jit_step of 100 µs, 150 µs apart, on each TPU.

    Each: fusion 0-60, synchronous all-reduce of bf16[1024] (2048 bytes) 60-90, fusion 90-100.
    """
    events = chrome_names(devices)
    reduce = (
        "%all-reduce.1 = bf16[1024]{0} all-reduce(bf16[1024]{0} %f), channel_id=1, "
        f"replica_groups=[1,{devices}]<=[{devices}], to_apply=%add"
    )
    for pid in range(3, 3 + devices):
        for step in range(steps):
            start = 10.0 + 150 * step
            events += [
                chrome_event(pid, 0, "jit_step(77)", start, 100, run_id=str(step)),
                chrome_event(pid, 1, "fusion.1", start, 60, **_fusion("fusion.1")),
                chrome_event(
                    pid, 1, "all-reduce.1", start + 60, 30, long_name=reduce,
                    hlo_category="all-reduce", bytes_accessed="4096", model_flops="1024",
                ),
                chrome_event(pid, 1, "fusion.2", start + 90, 10, **_fusion("fusion.2")),
            ]  # fmt: skip
    return {"displayTimeUnit": "ns", "metadata": {}, "traceEvents": [*events, {}]}


def _fusion(name: str) -> dict[str, str]:
    return {
        "long_name": f"%{name} = bf16[1024]{{0}} fusion(bf16[1024]{{0}} %p), kind=kLoop, calls=%c",
        "hlo_category": "loop fusion",
        "bytes_accessed": "4096",
        "model_flops": "2000",
    }


def save(path: Path, document: object) -> Path:
    """Writes JSON, compressed where the name ends in .gz."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def nsys(path: Path, *, steps: int = 4, green_contexts: bool = True, nvtx: bool = False) -> Path:
    """`steps` × (GEMM 40 µs, all-reduce 20 µs, H2D copy 10 µs), 100 µs apart, on one A100."""
    extra = ", greenContextId" if green_contexts else ""
    with sqlite3.connect(path) as database:
        database.execute("create table StringIds (id integer, value text)")
        database.executemany(
            "insert into StringIds values (?, ?)",
            [(1, GEMM), (2, ALL_REDUCE), (3, "Kernel"), (4, "step 1")],
        )
        database.execute(
            f"create table CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId{extra}, streamId, "
            "globalPid, demangledName, shortName)"
        )
        database.execute(
            "create table CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, globalPid, bytes, "
            "copyKind)"
        )
        database.execute(
            "create table TARGET_INFO_GPU (id, name, totalMemory, memoryBandwidth, cuDevice)"
        )
        database.execute(
            "insert into TARGET_INFO_GPU values (0, 'NVIDIA A100', 80000000000, 2e12, 0)"
        )
        columns = "start, end, deviceId, streamId, globalPid, demangledName, shortName"
        for step in range(steps):
            start = 5_000_000 + 100_000 * step
            database.executemany(
                f"insert into CUPTI_ACTIVITY_KIND_KERNEL ({columns}) values (?, ?, 0, 7, 1, ?, 3)",
                [(start, start + 40_000, 1), (start + 40_000, start + 60_000, 2)],
            )
            database.execute(
                "insert into CUPTI_ACTIVITY_KIND_MEMCPY values (?, ?, 0, 1, 4096, 1)",
                (start + 60_000, start + 70_000),
            )
        if nvtx:
            database.execute("create table NVTX_EVENTS (start, end, text, textId)")
            database.executemany(
                "insert into NVTX_EVENTS values (?, ?, ?, ?)",
                [(5_000_000 + 100_000 * k, 5_090_000 + 100_000 * k, None, 4) for k in range(steps)],
            )
    database.close()
    return path


def exposed_ps(events: DeviceEvents, collectives: frozenset[str]) -> int:
    """Time in which a collective of `collectives` (opcodes) ran and no kernel that computes did.

    Copies are no cover. Written apart from the measurements: it sweeps over all boundaries.
    """
    is_comm = np.array([op.opcode in collectives for op in events.table])[events.ops.op]
    computes = np.array([op.opcode == "kernel" for op in events.table])[events.ops.op]
    start, end = events.ops.start_ps, events.ops.start_ps + events.ops.duration_ps
    times = np.concatenate([start, end])
    order = np.argsort(times, kind="stable")
    sign = np.repeat([1, -1], len(start))
    comm = np.cumsum((sign * np.tile(is_comm, 2))[order])
    rest = np.cumsum((sign * np.tile(computes, 2))[order])
    gaps = np.diff(times[order])
    return int(gaps[(comm[:-1] > 0) & (rest[:-1] == 0)].sum())
