"""Diagnoses many traces, each in a process of its own: native code may crash, leak or hang there,
and the batch goes on and says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from prompts_agent.batch.journal import Entry, Journal
from prompts_agent.errors import ExitCode

__all__ = ["run_batch"]

Status = Literal["done", "bad_input", "not_diagnosable", "timed_out", "crashed"]

_STATUS: dict[int, Status] = {
    ExitCode.DONE: "done",
    ExitCode.BAD_INPUT: "bad_input",
    ExitCode.NOT_DIAGNOSABLE: "not_diagnosable",
}


def run_batch(
    paths: Sequence[Path],
    directory: Path,
    *,
    arguments: Sequence[str] = (),
    jobs: int = 1,
    timeout_s: float = 600.0,
    on_entry: Callable[[Entry], None] = lambda _: None,
) -> list[Entry]:
    """Runs `prompts diagnose` on each path and returns all entries, those of earlier runs included.

    Reports are written to `directory`, named by the path's hash, beside `journal.jsonl`. Paths that
    the journal already holds are skipped. At most `jobs` processes run at once; one that takes
    longer than `timeout_s` is killed and recorded as such.
    """
    journal = Journal(directory)
    finished = {entry.path: entry for entry in journal.entries()}
    waiting = [path for path in dict.fromkeys(paths) if str(path) not in finished]
    directory.mkdir(parents=True, exist_ok=True)

    def finish(entry: Entry) -> None:
        journal.append(entry)
        finished[entry.path] = entry
        on_entry(entry)

    asyncio.run(_run_all(waiting, directory, arguments, jobs, timeout_s, finish))
    return [finished[str(path)] for path in dict.fromkeys(paths)]


async def _run_all(
    paths: Sequence[Path],
    directory: Path,
    arguments: Sequence[str],
    jobs: int,
    timeout_s: float,
    finish: Callable[[Entry], None],
) -> None:
    slots = asyncio.Semaphore(jobs)

    async def one(path: Path) -> None:
        async with slots:
            finish(await _run_one(path, directory, arguments, timeout_s))

    async with asyncio.TaskGroup() as group:
        for path in paths:
            group.create_task(one(path))


async def _run_one(
    path: Path, directory: Path, arguments: Sequence[str], timeout_s: float
) -> Entry:
    name = hashlib.sha256(str(path).encode()).hexdigest()[:16] + ".json"
    command = ["-m", "prompts_agent", "diagnose", "--quiet", "--format", "json", "--force"]
    started_s = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        "--output",
        str(directory / name),
        *arguments,
        "--",
        str(path),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, stderr = await asyncio.wait_for(process.communicate(), timeout_s)
    except TimeoutError:
        process.kill()
        await process.wait()
        return Entry(
            path=str(path),
            status="timed_out",
            exit_code=None,
            wall_s=time.monotonic() - started_s,
            error=f"no answer within {timeout_s:g} s",
        )
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    status = _STATUS.get(process.returncode or 0, "crashed")
    return Entry(
        path=str(path),
        status=status,
        exit_code=process.returncode,
        wall_s=time.monotonic() - started_s,
        report=name if (directory / name).exists() else None,
        error=None if status == "done" else stderr.decode(errors="replace").strip()[-2000:],
    )
