"""Reads and measures a large trace with this package, and with XProf's overview page, and compares.

    python benchmarks/read_large_trace.py small.xplane.pb --size-mb 500 --xprof-size-mb 100

Both sides run in a process of their own on a trace grown from the same source. XProf needs 12 GB
for 500 MB, so by default it is given 100 MB, and the ratio is then of seconds per MB.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from grow_trace import grow

_OURS = """
import sys
from pathlib import Path
from prompts_agent.trace.measure.profile import measure
from prompts_agent.trace.profile import TraceFile
from prompts_agent.trace.xspace.reader import read_xspace
path = Path(sys.argv[1])
file = TraceFile(sha256="0" * 64, format="xspace", files=1, size_bytes=path.stat().st_size)
profile = measure(read_xspace([("host0", path)], file))
print(profile.step.median_s if profile.step else "no step")
"""
_XPROF = """
import sys
from xprof.convert import raw_to_tool_data
data, _ = raw_to_tool_data.xspace_to_tool_data(
    [sys.argv[1]], "overview_page", {"use_saved_result": False}
)
print("no answer" if data is None else len(data))
"""


@dataclass(frozen=True)
class Cost:
    """What one side took, and what it printed."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    said: str


def _peak_kb(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(x.split()[1]) for x in text.splitlines() if x.startswith("VmHWM")), 0)


def _run(code: str, path: Path) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    peak_kb = 0
    while child.poll() is None:
        peak_kb = max(peak_kb, _peak_kb(child.pid))
        time.sleep(0.02)
    said = child.stdout.read().strip() if child.stdout else ""
    wall_s = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall_s, cpu_s, peak_kb / 1000, said)


def _measure(name: str, code: str, source: Path, size_mb: float, directory: Path) -> float:
    target = directory / f"{name}.xplane.pb"
    _, events = grow(source, target, size_mb)
    size = target.stat().st_size / 1e6
    cost = _run(code, target)
    target.unlink()
    print(
        f"{name:8} {size:6.1f} MB {events:9d} events: {cost.wall_s:6.1f} s wall, "
        f"{cost.cpu_s:6.1f} s CPU, {cost.peak_mb:7.0f} MB peak ({cost.said})"
    )
    return cost.wall_s / size


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--size-mb", type=float, default=500)
    parser.add_argument("--xprof-size-mb", type=float, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        ours = _measure("prompts", _OURS, arguments.source, arguments.size_mb, directory)
        xprof = _measure("xprof", _XPROF, arguments.source, arguments.xprof_size_mb, directory)
    print(f"xprof takes {xprof / ours:.1f} times as long per MB")


if __name__ == "__main__":
    main()
