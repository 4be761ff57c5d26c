"""Pool: hands tasks to warm workers and gives their outcomes back as they come."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from prompts_agent.errors import InternalError
from prompts_agent.workers.outcome import Limits, Outcome

__all__ = ["Pool"]

K = TypeVar("K", bound=Hashable)
_WAKE_S = 0.5
"""How often it is asked whether to stop."""
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""There is a worker for every core; and a worker that forks may have one thread."""
_ATTEMPTS = 2
"""A worker that died may have been the victim of another task; who dies with two is guilty."""


class _Worker(Generic[K]):
    """One worker's process, its end of the pipe, and the task in hand."""

    def __init__(self, target: str, scratch: Path | None, how: str) -> None:
        self.connection, theirs = Pipe()
        # A file, for a pipe that nobody reads would stop the worker when it is full.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the worker)
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            place = "" if scratch is None else os.fspath(scratch)
            arguments = [str(theirs.fileno()), str(os.getpid()), target, place, how]
            self.process = subprocess.Popen(
                [sys.executable, "-m", "prompts_agent.workers.worker", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                env=_environment(),
                pass_fds=[theirs.fileno()],
                # Not in the terminal's group: Ctrl-C is for the parent to understand.
                start_new_session=True,
            )
        self.ready = False
        self.task: tuple[K, bytes, int] | None = None
        """Key, payload, and how many workers have had it."""

    def give(self, task: tuple[K, bytes, int], limits: Limits) -> None:
        """Send the task; a worker that is gone is noticed when its answer is read."""
        self.task = task
        with contextlib.suppress(OSError):
            self.connection.send_bytes(limits.model_dump_json().encode())
            self.connection.send_bytes(task[1])

    def end(self) -> str:
        """Kill it and with it its task; returns how it ended and what it said."""
        # Its end of the pipe closes, so it kills its task's whole family before it goes.
        self.connection.close()
        try:
            self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._stderr.seek(0)
        tail = self._stderr.read().decode("utf-8", "replace")[-1500:].strip()
        self._stderr.close()
        return f"exit code {self.process.returncode}{': ' if tail else ''}{tail}"


class Pool(Generic[K]):
    """`size` workers for `target`, `module:function` from bytes to bytes. A context manager.

    The module's `warm_up()`, where there is one, runs once in each worker before its first task.
    Each task has a process of its own, forked from its worker, and a private temporary directory
    below `scratch`, which is removed after it. With `keep`, tasks run in the workers themselves:
    what one loads is there for the next, and neither limits nor the directory are theirs.
    """

    def __init__(
        self,
        target: str,
        size: int,
        limits: Limits,
        scratch: Path | None = None,
        *,
        keep: bool = False,
    ) -> None:
        self._target = target
        self._limits = limits
        self._scratch = scratch
        self._size = size
        self._how = "kept" if keep else "forked"
        self._workers: list[_Worker[K]] = []
        self._queue: deque[tuple[K, bytes, int]] = deque()
        self._failed_starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._workers:
            self._workers.pop().end()

    def run(
        self,
        tasks: Iterable[tuple[K, bytes]],
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[K, Outcome]]:
        """Outcomes in the order in which they end. Once `stop()` holds no task is begun, and those
        that run are waited for.

        Raises `InternalError` where workers do not start.
        """
        waiting = ((key, payload, 0) for key, payload in tasks)
        self._fill(waiting, stop)
        while self._queue or any(worker.task for worker in self._workers):
            while self._wants_worker():
                self._workers.append(_Worker(self._target, self._scratch, self._how))
            for worker in self._workers:
                self._give(worker)
            for worker in self._heard():
                done = self._answer(worker)
                # The next task first: whoever takes the outcome may be writing for a while.
                self._fill(waiting, stop)
                self._give(worker)
                if done is not None:
                    yield done
            self._fill(waiting, stop)

    def _fill(self, waiting: Iterator[tuple[K, bytes, int]], stop: Callable[[], bool]) -> None:
        """As many tasks at hand as there may be workers; none once it is time to stop."""
        if stop():
            self._queue.clear()
            return
        missing = self._size - len(self._queue)
        self._queue.extend(itertools.islice(waiting, max(0, missing)))

    def _wants_worker(self) -> bool:
        idle = sum(worker.task is None for worker in self._workers)
        return len(self._queue) > idle and len(self._workers) < self._size

    def _give(self, worker: _Worker[K]) -> None:
        if self._queue and worker.ready and worker.task is None:
            worker.give(self._queue.popleft(), self._limits)

    def _heard(self) -> list[_Worker[K]]:
        ready = wait([worker.connection for worker in self._workers], _WAKE_S)
        return [worker for worker in self._workers if worker.connection in ready]

    def _answer(self, worker: _Worker[K]) -> tuple[K, Outcome] | None:
        """What a worker sent: that it is ready, an outcome, or its death."""
        connection: Connection = worker.connection
        try:
            head = connection.recv_bytes()
            if not worker.ready:
                worker.ready, self._failed_starts = True, 0
                return None
            outcome = Outcome.model_validate_json(head)
            result = connection.recv_bytes()
        except (EOFError, OSError):
            return self._buried(worker)
        if worker.task is None:
            return None
        key, worker.task = worker.task[0], None
        return key, outcome.model_copy(update={"result": result})

    def _buried(self, worker: _Worker[K]) -> tuple[K, Outcome] | None:
        self._workers.remove(worker)
        worker.ready = False
        how = worker.end()
        if worker.task is None:
            self._failed_starts += 1
            if self._failed_starts >= _ATTEMPTS:
                raise InternalError(
                    f"a worker process did not start ({how})",
                    rule="tasks run in processes of their own",
                    cure="Free some memory, or report it with this message.",
                )
            return None
        key, payload, attempts = worker.task
        if attempts + 1 < _ATTEMPTS:
            self._queue.appendleft((key, payload, attempts + 1))
            return None
        text = f"its worker process died twice ({how})"
        return key, Outcome(ended="crashed", reason="worker died", message=text)


def _environment() -> dict[str, str]:
    """Those of the parent, with this package found whatever the working directory is."""
    package = os.fspath(Path(__file__).resolve().parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    single = {name: os.environ.get(name, "1") for name in _ONE_THREAD}
    return {**os.environ, **single, "PYTHONPATH": os.pathsep.join(paths)}
