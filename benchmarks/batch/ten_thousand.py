"""Ten thousand rows: memory of the parent, and how long it takes to find that all is done.

    python benchmarks/batch/ten_thousand.py [--rows 10000]

Diagnoses are stood in for by the report of a real one (`stand_in.py`); the files, the journal, the
reports and the tables are real, and so is the second command, which resumes.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import EXAMPLE, environment, example_report, load
from stand_in import REPORT, TARGET


def batch(source: Path, out: Path) -> None:
    """Run in a process of its own; prints its peak resident memory."""
    from prompts_agent.batch.run import BatchRequest, run_batch
    from prompts_agent.batch.sources import find_items

    request = BatchRequest(directory=out, target=TARGET, jobs=2)
    ended = run_batch(find_items([str(source)]).items, request)
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(ended.rows, peak_kib * 1024 / 1e6)


def measure(rows: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        source, out = Path(place, "in"), Path(place, "out")
        source.mkdir()
        data = EXAMPLE.read_bytes()[:100]
        for number in range(rows):
            (source / f"job-{number:05d}.xplane.pb").write_bytes(data)
        report = example_report(Path(place))
        print(f"{rows} rows, reports of {report.stat().st_size / 1e3:.0f} kB, {load()}")
        started_s = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--batch", source, out],
            check=True,
            capture_output=True,
            text=True,
            env=environment(**{REPORT: str(report)}),
        )
        told, peak_mb = done.stdout.split()
        print(f"done {told} in {time.perf_counter() - started_s:.0f} s")
        print(f"peak of the parent: {float(peak_mb):.0f} MB")
        for number in (1, 2, 3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            started_s = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "prompts_agent", "batch", source, "-o", out],
                check=True,
                env=environment(),
                stderr=subprocess.DEVNULL,
            )
            wall_s = time.perf_counter() - started_s
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"resume {number}: {wall_s:.2f} s ({cpu_s:.2f} s of processor), {load()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--batch", nargs=2, type=Path)
    given = parser.parse_args()
    if given.batch is not None:
        batch(*given.batch)
    else:
        measure(given.rows)
