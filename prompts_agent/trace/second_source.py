"""XProf as a second source, for numbers that our own reader did not find. Never required.

XProf is asked in a process of its own, on a private link to the file: it writes results beside the
trace and trusts them later even where the trace has changed, it may use gigabytes, and it returns
nothing rather than an error for files that it cannot read.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prompts_agent.units import GIB
from prompts_agent.workers.process import die_with_parent

__all__ = ["OpCounters", "SecondSource", "ask_xprof"]

_TIMEOUT_S = 120.0
_MEMORY_BYTES = 8 * GIB
_HOST_ALLOCATORS = ("host", "cpu")
_TOOLS = ("memory_profile", "hlo_stats")


@dataclass(frozen=True, slots=True)
class OpCounters:
    """FLOPs and bytes of one run of an op; None where XProf counts none (it prints zero)."""

    flops: float | None
    bytes: float | None


@dataclass(frozen=True, slots=True)
class SecondSource:
    """What XProf found; `reason` says why where it found nothing at all."""

    hbm_peak_bytes: int | None = None
    ops: dict[tuple[int, str], OpCounters] = field(default_factory=dict)
    """By program id and op name."""
    reason: str | None = None


def ask_xprof(
    path: Path, *, timeout_s: float = _TIMEOUT_S, memory_bytes: int = _MEMORY_BYTES
) -> SecondSource:
    """XProf's answers about one host's XSpace, within limits of time and memory."""
    with tempfile.TemporaryDirectory(prefix="prompts-xprof-") as directory:
        private = Path(directory) / "host.xplane.pb"
        try:
            _link_or_copy(path, private)
            done = subprocess.run(
                [sys.executable, "-m", __spec__.name, str(private), str(memory_bytes)],
                capture_output=True,
                timeout=timeout_s,
                check=False,
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
            )
        except subprocess.TimeoutExpired:
            return SecondSource(reason=f"xprof took longer than {timeout_s:g} s")
        except OSError as error:
            return SecondSource(reason=f"xprof could not be started: {error}")
    if done.returncode != 0:
        return SecondSource(reason=f"xprof ended with code {done.returncode}")
    try:
        answer = json.loads(done.stdout)
        peak, ops = _peak(answer["memory_profile"] or {}), _ops(answer["hlo_stats"] or {})
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        return SecondSource(reason=f"xprof's answer is not as expected: {error}")
    if peak is None and not ops:
        return SecondSource(reason="xprof found neither allocator events nor op counters")
    return SecondSource(hbm_peak_bytes=peak, ops=ops)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source.resolve())
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def _peak(answer: dict[str, Any]) -> int | None:
    """The most that any device's allocator held, with what programs reserve."""
    peaks = []
    for name, allocator in answer.get("memoryProfilePerAllocator", {}).items():
        if any(word in name.lower() for word in _HOST_ALLOCATORS):
            continue
        summary = allocator.get("profileSummary", {})
        stats = summary.get("peakStats", {})
        held = int(stats.get("stackReservedBytes", 0)) + int(stats.get("heapAllocatedBytes", 0))
        peaks.append(max(held, int(summary.get("peakBytesUsageLifetime", 0))))
    return max(peaks, default=0) or None


def _ops(answer: dict[str, Any]) -> dict[tuple[int, str], OpCounters]:
    """Rates times mean durations. The rate of bytes is in GiB/s, though its column says GB/s: for
    an f32 to bf16 conversion only that agrees with the FLOPs and the intensity of the same row.
    """
    columns = {column["id"]: k for k, column in enumerate(answer.get("cols", ()))}
    found = {}
    for row in answer.get("rows", ()):
        cells = [cell["v"] for cell in row["c"]]
        run_s = float(cells[columns["avg_time"]]) * 1e-6
        flops = float(cells[columns["model_flop_rate"]]) * 1e9 * run_s
        moved = float(cells[columns["measured_memory_bw"]]) * GIB * run_s
        key = int(float(cells[columns["program_id"]])), str(cells[columns["hlo_op_name"]])
        if flops > 0 or moved > 0:
            # Counts were whole before they became rates.
            found[key] = OpCounters(flops=round(flops) or None, bytes=round(moved) or None)
    return found


def _worker(path: str, memory_bytes: int) -> int:
    """Runs in the other process: prints XProf's JSON, null for what it does not know."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (ImportError, ValueError, OSError):  # no such limit on this system
        pass
    from xprof.convert import raw_to_tool_data

    answers = {}
    for tool in _TOOLS:
        options = {"use_saved_result": False}
        data, _ = raw_to_tool_data.xspace_to_tool_data([path], tool, options)
        answers[tool] = None if data is None else json.loads(data)
    if not any(answers.values()):
        return 1
    json.dump(answers, sys.stdout)
    return 0


if __name__ == "__main__":
    die_with_parent(os.getppid())
    sys.exit(_worker(sys.argv[1], int(sys.argv[2])))
