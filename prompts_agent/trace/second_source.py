"""XProf as a second source, for a number that our own reader did not find. Never required.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prompts_agent.units import GIB

__all__ = ["SecondSource", "ask_xprof"]

_TIMEOUT_S = 120.0
_MEMORY_BYTES = 8 * GIB
_HOST_ALLOCATORS = ("host", "cpu")


@dataclass(frozen=True, slots=True)
class SecondSource:
    """What XProf found; `reason` says why where it found nothing."""

    hbm_peak_bytes: int | None = None
    reason: str | None = None


def ask_xprof(
    path: Path, *, timeout_s: float = _TIMEOUT_S, memory_bytes: int = _MEMORY_BYTES
) -> SecondSource:
    """XProf's peak memory of one host's XSpace file, within limits of time and memory."""
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
        return _peak(json.loads(done.stdout))
    except (ValueError, TypeError, AttributeError) as error:
        return SecondSource(reason=f"xprof's answer is not as expected: {error}")


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source.resolve())
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def _peak(answer: dict[str, Any]) -> SecondSource:
    """The most that any device's allocator held, with what programs reserve."""
    peaks = []
    for name, allocator in answer.get("memoryProfilePerAllocator", {}).items():
        if any(word in name.lower() for word in _HOST_ALLOCATORS):
            continue
        summary = allocator.get("profileSummary", {})
        stats = summary.get("peakStats", {})
        held = int(stats.get("stackReservedBytes", 0)) + int(stats.get("heapAllocatedBytes", 0))
        peaks.append(max(held, int(summary.get("peakBytesUsageLifetime", 0))))
    if not any(peaks):
        return SecondSource(reason="xprof found no allocator events")
    return SecondSource(hbm_peak_bytes=max(peaks))


def _worker(path: str, memory_bytes: int) -> int:
    """Runs in the other process: prints XProf's JSON."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (ImportError, ValueError, OSError):  # no such limit on this system
        pass
    from xprof.convert import raw_to_tool_data

    data, _ = raw_to_tool_data.xspace_to_tool_data(
        [path], "memory_profile", {"use_saved_result": False}
    )
    if data is None:
        return 1
    sys.stdout.write(data if isinstance(data, str) else data.decode())
    return 0


if __name__ == "__main__":
    sys.exit(_worker(sys.argv[1], int(sys.argv[2])))
