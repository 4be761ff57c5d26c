"""Worker: a warm process that forks a child for each task, watches it and tells how it ended.

`python -m prompts_agent.workers.worker FD PARENT_PID MODULE:FUNCTION SCRATCH HOW` answers on the
descriptor FD. HOW is `forked`, or `kept` for tasks that run in the worker itself, one by one. It
has one thread, so that a fork copies no lock that another thread holds; what a task needs is
imported by the module's `warm_up()` before, and thus shared by every child.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

from prompts_agent.errors import ExitCode, PromptsError
from prompts_agent.workers.outcome import Failure, Limits, Outcome
from prompts_agent.workers.process import (
    adopt_orphans,
    die_with_parent,
    fence_memory,
    offer_to_oom_killer,
)
from prompts_agent.workers.watch import Watch

__all__ = ["main"]

READY = b"ready"
RETURNED, RAISED, NO_MEMORY = b"R", b"E", b"M"
_FENCE = 2
"""The kernel's fence, over the limit: memory may be asked for and never touched."""

Task = Callable[[bytes], bytes]


def main(descriptor: int, parent: int, target: str, scratch: str, how: str) -> None:
    """Serve tasks until the parent closes its end."""
    die_with_parent(parent)
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    module_name, _, function = target.partition(":")
    module = importlib.import_module(module_name)
    task: Task = getattr(module, function)
    warm_up = getattr(module, "warm_up", None)
    if warm_up is not None:
        warm_up()
    # What is here stays: a collection in a child need not look at it, nor copy its pages.
    gc.collect()
    gc.freeze()
    with Connection(descriptor) as parent_end:
        parent_end.send_bytes(READY)
        while True:
            try:
                limits = Limits.model_validate_json(parent_end.recv_bytes())
                payload = parent_end.recv_bytes()
            except EOFError:
                return
            if how == "kept":
                _answer(_kept(task, payload), parent_end)
            else:
                _serve(task, payload, limits, parent_end, scratch)


def _serve(
    task: Task, payload: bytes, limits: Limits, parent_end: Connection, scratch: str
) -> None:
    directory = Path(tempfile.mkdtemp(prefix="task-", dir=scratch or None))
    try:
        with tempfile.TemporaryFile(dir=directory) as stderr:
            outcome = _forked(task, payload, limits, parent_end, directory, stderr)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if outcome is None:  # nobody is left to be told
        os._exit(1)
    _answer(outcome, parent_end)


def _answer(outcome: Outcome, parent_end: Connection) -> None:
    parent_end.send_bytes(outcome.model_dump_json(exclude={"result"}).encode())
    parent_end.send_bytes(outcome.result)


def _kept(task: Task, payload: bytes) -> Outcome:
    """The task in this process: what it loads stays for the next, and nothing guards this one."""
    started_s = time.monotonic()
    try:
        result = task(payload)
    except Exception as error:  # noqa: BLE001  (whatever it is, it is an outcome)
        failure = failure_of(error)
        return Outcome(ended="raised", reason=failure.name, message=failure.value, failure=failure)
    return Outcome(ended="returned", result=result, wall_s=time.monotonic() - started_s)


def _forked(
    task: Task,
    payload: bytes,
    limits: Limits,
    parent_end: Connection,
    directory: Path,
    stderr: IO[bytes],
) -> Outcome | None:
    reading, writing = os.pipe()
    own = os.getpid()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            os.close(parent_end.fileno())
            _become_task(own, limits, directory, stderr)
            _run(task, payload, writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        return Watch(pid, limits, pipe, parent_end, stderr).outcome()


def _become_task(parent: int, limits: Limits, directory: Path, stderr: IO[bytes]) -> None:
    os.setsid()
    die_with_parent(parent)
    offer_to_oom_killer()
    os.dup2(stderr.fileno(), 1)
    os.dup2(stderr.fileno(), 2)
    # The stack says enough; a core of gigabytes for each of a thousand damaged traces does not.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(2)
    os.environ["TMPDIR"] = os.fspath(directory)
    tempfile.tempdir = os.fspath(directory)
    if limits.memory_bytes is not None:
        fence_memory(_FENCE * limits.memory_bytes)


def _run(task: Task, payload: bytes, descriptor: int) -> None:
    with os.fdopen(descriptor, "wb") as pipe:
        try:
            answer = RETURNED + task(payload)
        except MemoryError:
            answer = NO_MEMORY
        except Exception as error:  # noqa: BLE001  (whatever it is, it costs this task alone)
            answer = RAISED + failure_of(error).model_dump_json().encode()
        pipe.write(answer)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()


def failure_of(error: Exception) -> Failure:
    """The exception as a record; one that is not a `PromptsError` is a defect."""
    if isinstance(error, PromptsError):
        return Failure(
            name=type(error).__name__,
            exit_code=int(error.exit_code),
            value=error.value,
            rule=error.rule,
            cure=error.cure,
        )
    return Failure(
        name=type(error).__name__,
        exit_code=int(ExitCode.INTERNAL),
        value=f"{type(error).__name__}: {error}",
        rule="this is a defect of prompts, not of your input",
        cure="Report it with this message; PROMPTS_DEBUG=1 prompts diagnose shows where.",
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6])
