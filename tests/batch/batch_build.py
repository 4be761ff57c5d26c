"""What batches of the tests are made of: items that need no trace, and a task that needs no agents.

The task's report is a function of the address alone, as a diagnosis is one of its trace.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prompts_agent.batch.item import Item, item_of
from prompts_agent.batch.job import Answer, Task, report_digest
from prompts_agent.batch.journal import Begun, Journal
from prompts_agent.batch.row import Row
from prompts_agent.batch.run import BatchRequest, run_batch
from prompts_agent.batch.settings import Settings
from prompts_agent.batch.store import report_path
from prompts_agent.errors import DamagedTraceError, NotDiagnosableError
from prompts_agent.workers.outcome import Limits

TARGET = "batch_build:answer"
HERE = Path(__file__).resolve().parent
PATHS = os.pathsep.join(map(os.fspath, (HERE, HERE.parents[1])))


def answer(payload: bytes) -> bytes:
    """One of many ways to end, by the address's name."""
    task = Task.model_validate_json(payload)
    name = task.item.address.rpartition("/")[2]
    if name.startswith("crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    elif name.startswith("hang"):
        time.sleep(600)
    elif name.startswith("eat"):
        held = [bytearray(2**23) for _ in range(200)]
        return bytes(len(held))
    elif name.startswith("damaged"):
        raise DamagedTraceError(f"{name} is cut off", rule="whole", cure="Copy it again.")
    elif name.startswith("poor"):
        raise NotDiagnosableError(f"{name} is poor", rule="rich", cure="Capture more.")
    elif name.startswith("slow"):
        time.sleep(0.05)
    report = json.dumps({"schema_version": "1.2", "of": name}).encode()
    return head(silent=name.startswith("silent")) + b"\n" + report


def head(*, silent: bool = False) -> bytes:
    """What a row says of a report."""
    told = Answer(
        silent=silent,
        trace_sha256="ab" * 32,
        tool_version="1.0",
        kb_sha256="cd" * 32,
        model_id=None,
        seed=None,
    )
    return told.model_dump_json().encode()


def items(names: Sequence[str]) -> list[Item]:
    """Items at addresses that need not exist."""
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return [item_of(f"/traces/{name}", recorded_at=when) for name in names]


def request(directory: Path, **more: Any) -> BatchRequest:
    """A batch of the cheap task."""
    limits = more.pop("limits", Limits(timeout_s=60))
    return BatchRequest(directory=directory, target=TARGET, limits=limits, **more)


def stored(directory: Path, reports: dict[Item, dict[str, Any]]) -> Path:
    """A batch that was done, with these reports."""
    journal = Journal(directory)
    journal.begin(
        Begun(
            tool_version="1.0",
            settings=Settings(),
            items=len(reports),
            started_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
    )
    for item, report in reports.items():
        data = json.dumps(report).encode()
        path = report_path(directory, report_digest(data))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        journal.append(
            Row(
                item=item,
                key=item.key,
                status="done",
                report=report_digest(data),
                answer=Answer.model_validate_json(head()),
                finished_at=datetime(2026, 2, 1, tzinfo=UTC),
            )
        )
    journal.close()
    return directory


def comparable(directory: Path) -> dict[str, Any]:
    """Rows by key, without what differs from run to run."""
    from prompts_agent.batch.journal import rows_in

    left_out = {"wall_s", "peak_bytes", "finished_at"}
    return {key: row.model_dump(exclude=left_out) for key, row in rows_in(directory).items()}


if __name__ == "__main__":
    found = items(json.loads(sys.argv[2]))
    run_batch(found, request(Path(sys.argv[1]), jobs=2))
