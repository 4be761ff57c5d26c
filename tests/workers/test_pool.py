"""A task's end is its own: whatever it does, the others get their answers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from prompts_agent.errors import InternalError
from prompts_agent.workers.outcome import Limits, Outcome
from prompts_agent.workers.pool import Pool

MIB = 2**20


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.fspath(Path(__file__).parent))


def outcomes(
    payloads: Iterable[str],
    function: str = "do",
    *,
    size: int = 1,
    limits: Limits | None = None,
    scratch: Path | None = None,
) -> dict[str, Outcome]:
    tasks = ((payload, payload.encode()) for payload in payloads)
    with Pool[str](f"tasks:{function}", size, limits or Limits(), scratch) as pool:
        return dict(pool.run(tasks))


def test_every_task_is_answered_once() -> None:
    payloads = [str(k) for k in range(40)]
    found = outcomes(payloads, "echo", size=2)
    assert {key: found[key].result.decode() for key in found} == {k: k for k in payloads}
    assert all(outcome.ended == "returned" for outcome in found.values())


def test_a_task_runs_in_a_child_of_the_process_that_was_warmed() -> None:
    warm, parent = outcomes(["x"], "parent")["x"].result.split()
    assert warm == parent
    assert int(parent) != os.getpid()


def test_kept_tasks_run_in_the_worker_itself() -> None:
    with Pool[str]("tasks:own", 1, Limits(), keep=True) as pool:
        found = dict(pool.run((text, text.encode()) for text in ("a", "wrong", "b")))
    assert found["a"].result == found["b"].result
    assert (found["wrong"].ended, found["wrong"].reason) == ("raised", "InputError")


def test_each_way_to_end_costs_its_own_task_only() -> None:
    ways = ["a", "segfault", "abort", "killed", "exit", "wrong", "defect", "b"]
    found = outcomes(ways)
    assert {way: (found[way].ended, found[way].reason) for way in ways} == {
        "a": ("returned", None),
        "segfault": ("crashed", "SIGSEGV"),
        "abort": ("crashed", "SIGABRT"),
        "killed": ("crashed", "SIGKILL"),
        "exit": ("crashed", "exit code 7"),
        "wrong": ("raised", "InputError"),
        "defect": ("raised", "ZeroDivisionError"),
        "b": ("returned", None),
    }
    assert "do" in (found["segfault"].message or "")  # the line that it died in
    assert "out of memory" in (found["killed"].message or "")
    failure = found["wrong"].failure
    assert failure is not None
    assert (failure.value, failure.rule, failure.cure) == ("42", "not that", "Another.")
    assert failure.exit_code == 2


def test_time_and_memory_have_limits() -> None:
    limits = Limits(timeout_s=1.5, memory_bytes=300 * MIB)
    found = outcomes(["hang", "eat", "ask", "b"], limits=limits)
    assert found["hang"].ended == "timed_out"
    assert found["hang"].message == "no answer within 1.5 s"
    assert found["eat"].ended == "out_of_memory"  # 800 MiB, touched
    assert found["ask"].ended == "out_of_memory"  # 64 GiB, never touched
    assert found["ask"].message == "it asked for more than 0.293 GiB of memory"  # 300 / 1024
    assert found["b"].ended == "returned"


def test_nothing_that_a_task_began_outlives_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    assert outcomes([f"sleeper {note}"])[f"sleeper {note}"].ended == "returned"
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_task_that_kills_its_worker_twice_is_given_up() -> None:
    found = outcomes(["kill worker", "b"])
    assert (found["kill worker"].ended, found["kill worker"].reason) == ("crashed", "worker died")
    assert found["b"].ended == "returned"


def test_what_a_task_leaves_in_its_temporary_directory_goes(tmp_path: Path) -> None:
    place = Path(outcomes(["scratch"], scratch=tmp_path)["scratch"].result.decode())
    assert place.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_stopping_lets_those_that_run_finish() -> None:
    begun = []
    with Pool[int]("tasks:echo", 1, Limits()) as pool:
        for key, _ in pool.run(((k, b"") for k in range(50)), lambda: len(begun) >= 2):
            begun.append(key)
    # One may have been handed out while the second answer was on its way.
    assert begun in ([0, 1], [0, 1, 2])


def test_a_worker_that_cannot_start_is_an_error_and_no_hang() -> None:
    with pytest.raises(InternalError, match="did not start"):
        outcomes(["a"], "there_is_none")


def test_leaving_a_pool_ends_its_tasks() -> None:
    started = time.monotonic()
    with Pool[int]("tasks:do", 1, Limits()) as pool:
        running = pool.run([(1, b"a"), (2, b"hang")])
        next(running)
        workers = [worker.process.pid for worker in pool._workers]
    assert time.monotonic() - started < 60  # the hang is 600
    for pid in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
