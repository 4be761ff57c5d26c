"""What XProf's answers mean, and that its zeros stay unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prompts_agent.trace import second_source
from prompts_agent.trace.measure.profile import measure
from prompts_agent.trace.read import read
from prompts_agent.trace.second_source import OpCounters, SecondSource, ask_xprof

COLUMNS = ["program_id", "hlo_op_name", "avg_time", "model_flop_rate", "measured_memory_bw"]


def stats(*rows: list[Any]) -> dict[str, Any]:
    return {
        "cols": [{"id": name} for name in COLUMNS],
        "rows": [{"c": [{"v": value} for value in row]} for row in rows],
    }


def test_rates_times_the_mean_run_are_counts() -> None:
    # 100 µs at 2000 GFLOP/s are 2e8 FLOP; at 1000 GiB/s, 1000 · 2^30 · 1e-4 bytes.
    found = second_source._ops(stats([7.0, "fusion.1", 100.0, 2000.0, 1000.0]))
    assert found == {(7, "fusion.1"): OpCounters(flops=2e8, bytes=round(1000 * 2**30 * 1e-4))}


def test_zero_is_what_xprof_prints_for_unknown() -> None:
    found = second_source._ops(
        stats([7.0, "custom-call.1", 39.0, 0.0, 0.0], [7.0, "copy.1", 10.0, 0.0, 1.0])
    )
    assert found == {(7, "copy.1"): OpCounters(flops=None, bytes=round(2**30 * 1e-5))}


def test_the_peak_is_that_of_a_device_and_not_of_the_host() -> None:
    def allocator(stack: int, heap: int, lifetime: int) -> dict[str, Any]:
        stats = {"stackReservedBytes": str(stack), "heapAllocatedBytes": str(heap)}
        return {"profileSummary": {"peakStats": stats, "peakBytesUsageLifetime": str(lifetime)}}

    allocators = {
        "host": allocator(0, 900, 900),
        "0": allocator(10, 20, 25),
        "1": allocator(0, 0, 40),
    }
    assert second_source._peak({"memoryProfilePerAllocator": allocators}) == 40
    assert second_source._peak({"memoryProfilePerAllocator": {}}) is None


def test_a_file_that_xprof_cannot_read_has_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(b"\x00" * 100)
    assert ask_xprof(path).reason is not None
    assert [p.name for p in tmp_path.iterdir()] == ["x.xplane.pb"]  # nothing is cached beside it


@pytest.mark.real_traces
def test_gpu_fusions_get_counts_and_custom_calls_stay_unknown(real_traces: Path) -> None:
    path = real_traces / "gpu-mi300x-jax-attention.xplane.pb"
    profile = measure(read([path], xprof=True))
    by_name = {op.name: op for op in profile.top_ops}
    assert by_name["custom-call.1"].flops is None
    # f32[4,4,2048,1024] contracted over 512: 2 · 4 · 4 · 2048 · 1024 · 512 FLOP.
    assert by_name["gemm_fusion_dot_general.1"].flops == 34359738368
    assert by_name["loop_convert_fusion"].bytes is not None


def test_nothing_found_costs_nothing() -> None:
    assert SecondSource() == SecondSource(hbm_peak_bytes=None, ops={}, reason=None)
