"""Two hundred random kill -9 of a batch, each followed by the same command: what is lost, what is
done twice, and whether journal, reports and tables are those of a batch that nobody killed.

    python benchmarks/batch/kills.py [--kills 200] [--seed 1] [--real]

Diagnoses are stood in for by the report of a real one (`stand_in.py`), so that most kills meet a
batch that writes; with --real they are real, of copies of the example trace.
"""

from __future__ import annotations

import argparse
import collections
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import EXAMPLE, environment, example_report
from stand_in import REPORT, TARGET

ROUND = 150
"""Rows of a batch; another is begun when one is whole."""


def batch(source: Path, out: Path, target: str) -> None:
    from prompts_agent.batch.run import BatchRequest, run_batch
    from prompts_agent.batch.sources import find_items

    run_batch(find_items([str(source)]).items, BatchRequest(directory=out, target=target, jobs=2))


def facts(out: Path) -> dict[str, Any]:
    """Everything of a batch that must not depend on kills."""
    from prompts_agent.batch.ask import ask
    from prompts_agent.batch.journal import Journal
    from prompts_agent.batch.row import Row

    rows = [entry for entry in Journal(out).entries() if isinstance(entry, Row)]
    left_out = {"wall_s", "peak_bytes", "finished_at"}
    timed = ", ".join(sorted(left_out))
    return {
        "twice": len(rows) - len({row.key for row in rows}),
        "rows": {row.key: row.model_dump(mode="json", exclude=left_out) for row in rows},
        "reports": {
            path.name: path.read_bytes() for path in out.glob("reports/*/*/*") if path.is_file()
        },
        "jobs": ask(out, f"select * exclude ({timed}) from jobs").rows,
        "facts": ask(out, "from facts").rows,
    }


def measure(kills: int, seed: int, *, real: bool) -> int:
    from prompts_agent.batch.job import TARGET as DIAGNOSE

    chance, target = random.Random(seed), DIAGNOSE if real else TARGET
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "in")
        source.mkdir()
        for number in range(ROUND):
            (source / f"job-{number:03d}.xplane.pb.gz").write_bytes(EXAMPLE.read_bytes())
        more = {REPORT: str(example_report(Path(place)))}
        command = [sys.executable, __file__, "--batch", source]

        def run(out: Path) -> subprocess.Popen[bytes]:
            return subprocess.Popen([*command, out, target], env=environment(**more))

        whole = Path(place, "whole")
        started_s = time.perf_counter()
        run(whole).wait()
        took_s = time.perf_counter() - started_s
        wanted, done, batches, wrong = facts(whole), 0, 0, 0
        at = collections.Counter[str]()
        while done < kills:
            out = Path(place, f"cut-{batches}")
            batches += 1
            while done < kills:
                process = run(out)
                time.sleep(chance.uniform(0.1, took_s / 2))
                if process.poll() is not None:
                    break
                process.send_signal(signal.SIGKILL)
                process.wait()
                done += 1
                at[moment(out)] += 1
                if done % 20 == 0:
                    print(f"{done} kills, {batches} batches, {wrong} differ", flush=True)
            if run(out).wait() != 0 or facts(out) != wanted:
                wrong += 1
                print(f"batch {batches}: not as it would be without kills")
    print(f"{done} kills over {batches} batches of {ROUND} rows; batches that differ: {wrong}")
    print("kills met: " + ", ".join(f"{what} {count}" for what, count in at.most_common()))
    return wrong


def moment(out: Path) -> str:
    """Where a kill met the batch, by what it left."""
    journal = out / "journal.jsonl"
    if not journal.exists():
        return "before the first row"
    data = journal.read_bytes()
    if data and not data.endswith(b"\n"):
        return "within a line of the journal"
    rows = data.count(b'{"row":')
    if any((out / "scratch").glob("[0-9a-f]*")):
        return "within a report"
    if (out / "tables" / ".new").exists():
        return "within the tables"
    return "before the first row" if not rows else "between rows" if rows < ROUND else "at the end"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--batch", nargs=3)
    given = parser.parse_args()
    if given.batch is not None:
        batch(Path(given.batch[0]), Path(given.batch[1]), given.batch[2])
    else:
        sys.exit(measure(given.kills, given.seed, real=given.real))
