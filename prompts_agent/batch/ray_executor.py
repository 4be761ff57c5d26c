"""Ray: the same tasks on a cluster. Each runs below a Ray worker in a process of its own, with the
same limits, and its report comes back to the one process that writes.

Nodes need this version of the package, and see the traces where the addresses say.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from prompts_agent.batch.extra import ray as the_ray
from prompts_agent.errors import InputError, SettingError
from prompts_agent.units import GIB
from prompts_agent.workers.outcome import Limits, Outcome
from prompts_agent.workers.pool import Pool

__all__ = ["RayExecutor"]

_RETRIES = 3
"""Of a task whose node or Ray worker died; what a task itself does is an outcome, and no retry."""
_WAKE_S = 0.5
_AHEAD = 2
"""Tasks handed out for each core, so that none waits for the next one."""

_pools: dict[str, Pool[int]] = {}
"""In a Ray worker: its warm process, kept from task to task. It dies with the Ray worker."""


def _work(target: str, limits: str, payload: bytes) -> tuple[str, bytes]:
    key = f"{target} {limits}"
    if key not in _pools:
        _pools[key] = Pool[int](target, 1, Limits.model_validate_json(limits))
    (_, outcome), *_ = _pools[key].run([(0, payload)])
    return outcome.model_dump_json(exclude={"result"}), outcome.result


class RayExecutor:
    """Tasks on the cluster at `address`; None: RAY_ADDRESS, else one that is begun here. A context
    manager. `jobs` None: as many at once as the cluster has cores.
    """

    def __init__(self, target: str, jobs: int | None, limits: Limits, address: str | None) -> None:
        self._target = target
        self._jobs = jobs
        self._limits = limits
        self._address = address
        self._ray: Any = None

    def __enter__(self) -> Self:
        # No statistics leave this machine, and no page is served from it.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray = the_ray()
        with _own_handlers():
            try:
                ray.init(**self._arguments())
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                said = str(error).strip().splitlines()
                raise SettingError(
                    f"no Ray cluster ({said[0] if said else type(error).__name__})",
                    rule="--executor ray runs on a cluster, or begins one on this machine",
                    cure="Start one with `ray start --head`, or check --ray-address.",
                ) from error
        self._ray = ray
        self._check_memory()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ray is not None:
            self._ray.shutdown()

    def _arguments(self) -> dict[str, Any]:
        quiet: dict[str, Any] = {
            "log_to_driver": False,
            "configure_logging": False,
            "ignore_reinit_error": True,
        }
        if self._address is not None or os.environ.get("RAY_ADDRESS"):
            return {"address": self._address, **quiet}
        return {"num_cpus": self._jobs, "include_dashboard": False, **quiet}

    def _check_memory(self) -> None:
        """A task that no node has the memory for would wait for ever."""
        wanted = self._limits.memory_bytes
        most = max(
            (
                node["Resources"].get("memory", 0.0)
                for node in self._ray.nodes()
                if node.get("Alive", False)
            ),
            default=0.0,
        )
        if wanted is not None and wanted > most:
            self._ray.shutdown()
            raise InputError(
                f"--memory {wanted / GIB:.3g}GiB",
                rule=f"the largest node offers Ray {most / GIB:.3g} GiB",
                cure="Give less, or start nodes with `ray start --memory`.",
            )

    def run(
        self, tasks: Iterable[tuple[str, bytes]], stop: Callable[[], bool]
    ) -> Iterator[tuple[str, Outcome]]:
        """Outcomes as they come; those that run are waited for once `stop()` holds."""
        ray = self._ray
        work = ray.remote(
            num_cpus=1,
            memory=self._limits.memory_bytes or 0,
            max_retries=_RETRIES,
        )(_work)
        limits = self._limits.model_dump_json()
        waiting = iter(tasks)
        running: dict[Any, str] = {}
        while True:
            while len(running) < self._most() and not stop():
                task = next(waiting, None)
                if task is None:
                    break
                running[work.remote(self._target, limits, task[1])] = task[0]
            if not running:
                return
            ended, _ = ray.wait(list(running), num_returns=1, timeout=_WAKE_S)
            for reference in ended:
                yield running.pop(reference), self._outcome(reference)

    def _most(self) -> int:
        if self._jobs is not None:
            return self._jobs
        return max(1, int(self._ray.cluster_resources().get("CPU", 1))) * _AHEAD

    def _outcome(self, reference: Any) -> Outcome:
        exceptions = self._ray.exceptions
        try:
            head, result = self._ray.get(reference)
        except exceptions.OutOfMemoryError as error:
            return Outcome(ended="out_of_memory", reason="node memory", message=_first(error))
        except exceptions.RayError as error:
            # The node or its Ray worker died more than `_RETRIES` times with this task.
            return Outcome(ended="crashed", reason=type(error).__name__, message=_first(error))
        outcome = Outcome.model_validate_json(head)
        return outcome.model_copy(update={"result": result})


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextlib.contextmanager
def _own_handlers() -> Iterator[None]:
    """Ray sets a handler of its own for SIGTERM; a batch has one that ends it in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
