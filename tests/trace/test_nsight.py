"""Exports of Nsight Systems, whose columns differ by release."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from trace_samples import exposed_ps, nsys

from prompts_agent.errors import DamagedTraceError, NotDiagnosableError
from prompts_agent.trace.read import read


@pytest.mark.parametrize("green_contexts", [True, False])
def test_steps_by_hand(tmp_path: Path, green_contexts: bool) -> None:
    capture = read([nsys(tmp_path / "r.sqlite", green_contexts=green_contexts)])
    (device,) = capture.devices
    assert device.label == "NVIDIA A100"
    assert device.memory_bytes == 80_000_000_000
    assert device.memory_bandwidth_bytes_per_s == 2e12
    events = capture.events(device)
    assert Counter(events.table[op].opcode for op in events.ops.op) == {
        "kernel": 4,
        "all-reduce": 4,
        "memcpy-h2d": 4,
    }
    assert exposed_ps(events, frozenset({"all-reduce"})) == 4 * 20_000_000
    assert [run.start_ps for run in events.modules] == [0, 100_000_000, 200_000_000]
    assert any("4 repeats of kernel" in caveat for caveat in capture.file.caveats)


def test_steps_from_nvtx_ranges(tmp_path: Path) -> None:
    capture = read([nsys(tmp_path / "r.sqlite", nvtx=True)])
    events = capture.events(capture.devices[0])
    assert [(run.start_ps, run.duration_ps) for run in events.modules] == [
        (100_000_000 * k, 90_000_000) for k in range(4)
    ]


def test_the_file_is_not_written_to(tmp_path: Path) -> None:
    path = nsys(tmp_path / "r.sqlite")
    before = path.read_bytes()
    read([path])
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.sqlite"]


def test_an_export_without_gpu_work(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("create table TARGET_INFO_GPU (id, name)")
    database.close()
    with pytest.raises(NotDiagnosableError, match="no kernel"):
        read([path])


def test_rows_that_make_no_sense(tmp_path: Path) -> None:
    path = nsys(tmp_path / "r.sqlite")
    with sqlite3.connect(path) as database:
        database.executemany(
            "insert into CUPTI_ACTIVITY_KIND_MEMCPY values (?, ?, 0, 1, 1, 99)",
            [(10, 5), ("soon", "later"), (None, None), (2**62, 2**62 + 5)],
        )
    database.close()
    capture = read([path])
    assert any("4 rows with impossible times" in caveat for caveat in capture.file.caveats)


def test_a_damaged_page(tmp_path: Path) -> None:
    path = nsys(tmp_path / "r.sqlite", steps=500)
    data = bytearray(path.read_bytes())
    data[4096 * 6 :] = bytes(len(data) - 4096 * 6)
    path.write_bytes(data)
    with pytest.raises(DamagedTraceError, match="nsys export"):
        read([path])


@pytest.mark.real_traces
def test_a100_with_mpi(real_traces: Path) -> None:
    capture = read([real_traces / "nsys-a100-mpi.sqlite"])
    (device,) = capture.devices
    assert device.label == "NVIDIA A100-SXM4-80GB"
    assert device.memory_bandwidth_bytes_per_s == 2039040000000
    events = capture.events(device)
    found = Counter(events.table[op].opcode for op in events.ops.op)
    # Counted with sqlite3: 1312 kernels, and 279 copies of which 254 have copyKind 1.
    assert found == {"kernel": 1312, "memcpy-h2d": 254, "memcpy-d2h": 25}
    assert capture.versions == {"nsys": "2024.5.1.113"}
