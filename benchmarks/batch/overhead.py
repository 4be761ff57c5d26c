"""Batch ÷ the same traces one by one in a warm process; one worker ÷ two workers.

    python benchmarks/batch/overhead.py [TRACE...] [--copies 4] [--rounds 3]

The three are run in turn, round by round, so that what else the machine does meets all of them.
The warm process has imported everything and diagnosed one trace before its clock starts; a batch is
timed from before its start to after its tables. Processor seconds are shown beside: on a machine
that is shared they say what the wall clock cannot.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import EXAMPLE, environment, load


def warm(paths: list[Path]) -> tuple[float, float]:
    """Seconds and processor seconds of one warm process; run in a child of this one."""
    from prompts_agent.agents.graph import run_diagnosis
    from prompts_agent.agents.request import DiagnoseRequest
    from prompts_agent.errors import PromptsError
    from prompts_agent.report.json_text import json_text

    def one(path: Path) -> None:
        with contextlib.suppress(PromptsError):
            json_text(run_diagnosis(DiagnoseRequest(paths=(path,))))

    for path in {path.name.partition("-")[2]: path for path in paths}.values():
        one(path)
    started_s, cpu_s = time.perf_counter(), time.process_time()
    for path in paths:
        one(path)
    return time.perf_counter() - started_s, time.process_time() - cpu_s


def in_warm_process(paths: list[Path]) -> tuple[float, float]:
    names = os.pathsep.join(map(os.fspath, paths))
    done = subprocess.run(
        [sys.executable, __file__, "--warm", names],
        check=True,
        capture_output=True,
        text=True,
        env=environment(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1"),
    )
    wall_s, cpu_s = map(float, done.stdout.split())
    return wall_s, cpu_s


def batch(directory: Path, jobs: int) -> tuple[float, float]:
    """Seconds from start to end, and processor seconds of the batch and all its children."""
    with tempfile.TemporaryDirectory() as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started_s = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "prompts_agent", "batch", directory, "-o", out, "-j", str(jobs),
             "-q"],
            check=True,
            env=environment(),
        )  # fmt: skip
        wall_s = time.perf_counter() - started_s
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def copies(traces: list[Path], count: int, directory: Path) -> list[Path]:
    """Each trace `count` times under names of its own, so that each is a row."""
    found = []
    for number in range(count):
        for trace in traces:
            path = directory / f"{number:03d}-{trace.name}"
            path.hardlink_to(trace) if _linkable(trace, directory) else _copied(trace, path)
            found.append(path)
    return found


def _linkable(trace: Path, directory: Path) -> bool:
    return trace.stat().st_dev == directory.stat().st_dev


def _copied(trace: Path, path: Path) -> None:
    path.write_bytes(trace.read_bytes())


def measure(traces: list[Path], count: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        paths = copies(traces, count, Path(place))
        print(f"{len(paths)} traces, {load()}")
        overheads, speedups, cpu = [], [], []
        for number in range(1, rounds + 1):
            alone = in_warm_process(paths)
            one, two = batch(Path(place), 1), batch(Path(place), 2)
            overheads.append(one[0] / alone[0] - 1)
            speedups.append(one[0] / two[0])
            cpu.append(one[1] / alone[1] - 1)
            print(
                f"round {number}: warm process {alone[0]:.1f} s ({alone[1]:.1f} s of processor), "
                f"one worker {one[0]:.1f} s ({one[1]:.1f}), two {two[0]:.1f} s ({two[1]:.1f}); "
                f"{load()}"
            )
    print(f"overhead of a batch: {statistics.median(overheads):.0%} of wall clock, ", end="")
    print(f"{statistics.median(cpu):.0%} of processor time (medians)")
    print(f"two workers: {statistics.median(speedups):.2f} times one (median)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path, default=[EXAMPLE])
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm")
    given = parser.parse_args()
    if given.warm is not None:
        print(*warm([Path(name) for name in given.warm.split(os.pathsep)]))
    else:
        measure(given.traces, given.copies, given.rounds)
